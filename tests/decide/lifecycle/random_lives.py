"""Random lives of random pods, and what must hold of them, from the API's documentation and not from the machine."""

from collections.abc import Sequence

from hypothesis import strategies as st

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.phase import ENDED
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.effects import Effect
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus, Failure
from support.life_trace import a_pod, resized
from support.life_world import Killed, LifeWorld

POLICIES = ("Always", "OnFailure", "Never")
WHOLE = 400.0  # seconds: no back-off is longer
Command = tuple[str, int, int]
"""What happens, to which container (of those there are), and a number."""


@st.composite
def pods(draw: st.DrawFn) -> str:
    """As `life_trace.a_pod` reads them."""
    init = draw(st.lists(st.sampled_from(["i", "s"]), max_size=3))
    names = [f"{kind}{number}{'*' if kind == 's' else ''}" for number, kind in enumerate(init)]
    own = st.sampled_from(["", "", ":Always", ":OnFailure", ":Never", ":!42"])
    names += [f"c{number}{draw(own)}" for number in range(draw(st.integers(1, 3)))]
    return f"{' '.join(names)} restart={draw(st.sampled_from(POLICIES))}"


def _commands(*names: str) -> st.SearchStrategy[Command]:
    return st.tuples(st.sampled_from(names), st.integers(0, 5), st.sampled_from([0, 1, 42]))


MEANWHILE = _commands(
    *["exit"] * 8,
    "lose sandbox",
    "lose cgroup",
    "unhealthy",
    "unready",
    "well",
    "resize",
    "restarting",
    "time",
    "obedient",
)
FAULTS = _commands("fail image", "fail start", "fail sandbox", "fail mount", "fail resize", "fail list", "mend", "mend")
KILLS = _commands("kill", "kill within")
ENDS = _commands("delete", "delete", "gone", "end")


class Life(LifeWorld):
    """A world that objects to what must not be done."""

    def __init__(self, pod: Pod) -> None:
        self.restarts: dict[str, int] = {}
        super().__init__(pod)

    # ------------------------------------------------------------------ what must hold of each effect

    def _carry_out(self, effect: Effect) -> on.Event | None:
        match effect:
            case do.StartContainer(container=container):
                self._may_start(container)
            case do.WriteStatus(status):
                assert self.status.phase not in ENDED or status.phase == self.status.phase, "a pod never leaves its end"
                stands = any(sandbox.state.value == "ready" for sandbox in self.sandboxes)
                over = not self.running_names() and not stands
                assert status.phase not in ENDED or over, "its end is told when nothing is left of it"
                for shown in (*status.init_container_statuses, *status.container_statuses):
                    assert shown.restart_count >= self.restarts.get(shown.name, 0), "restarts only ever grow"
                    self.restarts[shown.name] = shown.restart_count
            case do.RemoveCgroup() | do.RemoveVolumes() | do.DeleteObject():
                assert not self.running_names(), "what a container uses is not taken from it"
        return super()._carry_out(effect)

    def _may_start(self, container: Container) -> None:
        spec = self.pod.spec
        assert self.cgroup, "containers need the pod's cgroup"
        assert self.volumes, "containers need their volumes"
        if self.life.pod.metadata.deletion_timestamp is not None:
            raise AssertionError("a pod that ends starts nothing")
        if container in spec.containers and not any(self.here(other.name) for other in spec.containers):
            for before in spec.init_containers:
                assert self.passed(before), f"{before.name} comes before {container.name}"
        last = self.here(container.name)
        if last is not None and last.state is ContainerState.EXITED and last.id not in self.stopped:
            assert self.comes_again(container, last.exit_code), f"{container.name} is not to come again"

    # ------------------------------------------------------------------ what must hold at rest

    def check_at_rest(self) -> None:
        running = self.running_names()
        if self.deleted or self.life.gone:
            assert (running, self.sandboxes, self.cgroup, self.volumes) == ([], [], False, False)
            return
        if self.status.phase in ENDED:
            assert (running, self.cgroup, self.volumes) == ([], False, False)
            return
        assert self.sandboxes[0].state.value == "ready"
        assert (self.cgroup, self.volumes) == (True, True)
        spec, initialised = self.pod.spec, any(self.here(container.name) for container in self.pod.spec.containers)
        for container in spec.init_containers:
            if is_sidecar(container) or not (initialised or self.passed(container)):
                assert container.name in running, f"{container.name} should run"
            if not initialised and not is_sidecar(container) and not self.passed(container):
                return
        ended = [container for container in spec.containers if container.name not in running]
        for container in ended:
            last = self.here(container.name)
            assert last is not None, f"{container.name} should have begun"
            assert last.state is ContainerState.EXITED
            assert not self.comes_again(container, last.exit_code), f"{container.name} should run again"
            assert last.id not in self.actuated.restarting.values(), f"{container.name} should have started anew"
        assert len(ended) < len(spec.containers), "a pod of which nothing will run again is over"

    def passed(self, container: Container) -> bool:
        if is_sidecar(container):
            return container.name in self.running_names()
        last = self.here(container.name)
        return last is not None and last.state is ContainerState.EXITED and last.exit_code == 0

    def here(self, name: str) -> ContainerStatus | None:
        """The newest instance in the newest sandbox."""
        home = self.sandboxes[0].id if self.sandboxes else ""
        return next((instance for instance, box in self.containers if instance.name == name and box == home), None)

    def comes_again(self, container: Container, code: int) -> bool:
        """A rule that names the code, else the container's policy, else the pod's."""
        rules = [rule.exit_codes.values for rule in container.restart_policy_rules if rule.exit_codes is not None]
        if is_sidecar(container) or any(code in codes for codes in rules):
            return True
        policy = container.restart_policy or self.pod.spec.restart_policy
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    # ------------------------------------------------------------------ what happens

    def happen(self, command: Command) -> None:  # noqa: C901  (a list of commands)
        what, which, number = command
        if what in ("gone", "end"):  # of which only this kubelet knows
            self.killed_at = None
        running = self.running_names()
        name = running[which % len(running)] if running else ""
        match what:
            case "exit" if name:
                self.exit(name, number)
            case "lose sandbox" if self.sandboxes and self.sandboxes[0].state.value == "ready":
                self.lose_sandbox()
            case "lose cgroup":
                self.cgroup = self.cgroup and self.status.phase in ENDED
            case "unhealthy" if name:
                self.unhealthy.add(self.running(name).id)
            case "unready" if name:
                self.unready.add(name)
            case "obedient" if name:
                self.obedient.add(name)
            case "well":
                self.unready.clear()
            case "resize" | "restarting" if not self.life.ending:
                size = str(1 + which)
                self.change(resized(self.pod, self.pod.spec.containers[0].name, size, restarting=what != "resize"))
            case "time":
                self.seconds += 7 * which
            case "mend":
                self.fails.clear()
            case "fail start":
                self.fails[f"start {self.pod.spec.containers[0].name}"] = "no such command"
            case "kill":
                self.kill()
            case "kill within":
                self.killed_at = len(self.effects) + 1 + 3 * which
            case "delete":
                self.delete(number)
            case "gone":
                self.hear(on.ObjectGone())
            case "end":
                self.hear(on.EndWanted(Failure("Evicted", "The node was low on resource")))
            case _ if what.startswith("fail "):
                self.fails[what[5:]] = "no"
        self.due = True


def live(words: str, commands: Sequence[Command], *, killed_at: int | None = None, eagerly: bool = False) -> Life:
    """The life, mended and at rest at the end. `eagerly`: it comes to rest after each command as well."""
    life = Life(a_pod(words))
    life.killed_at = killed_at
    life.settle(WHOLE)
    for command in commands:
        if life.deleted:
            break
        life.happen(command)
        if eagerly or command[1] % 2:
            life.settle(WHOLE) if not life.fails else _try(life)
    life.fails.clear()
    life.due = True
    if not life.deleted:
        life.settle(WHOLE)
    life.check_at_rest()
    return life


def _try(life: Life) -> None:
    """A turn or two, where something fails for as long as it is not mended."""
    for _ in range(2):
        try:
            life.turn()
        except Killed:
            life.kill()
