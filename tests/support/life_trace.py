"""Trace scripts of a pod's life: commands, `----`, and what the machine had done.

    pod web restart=OnFailure
    ----
    sandbox 0
    start web 0
    status Running web=running/0

Blocks are separated by an empty line; `#` begins a comment. After the commands of a block the machine takes turns until
it wants none within a minute; `turn` at the end of a block has it take one. Commands:

    pod i1 s1* web restart=Always grace=30 deadline=60   names with i are init containers, a star makes a sidecar;
                                    `web:OnFailure` has a policy of its own, `web:!42` starts again after exit code 42
    at 30                           seconds since the beginning
    exit NAME CODE, lose NAME       a container ends; the runtime forgets it
    lose sandbox, lose cgroup
    unstarted NAME, unready NAME, unhealthy NAME; well      what probes say; all are well again
    obedient NAME                   it ends with exit code 0 when it is stopped
    fail WHAT TEXT, mend            mount, sandbox, resize, image, list, `start-NAME`; nothing fails any more
    resize NAME cpu=1, restarting NAME cpu=1    allocated anew; the second restarts it, as its resize policy says
    delete GRACE, gone, end REASON  by the API, by force, by the node
    kill                            the kubelet; kill N: when it has carried out N effects of the next turn
    turn                            one turn; what it waits for is shown

Shown: effects that change something, events, each status that differs from the one before.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.effects import Effect
from podfit.decide.lifecycle.facts import Failure
from podfit.decide.node.effects import NoteRestarts
from support.life_world import Killed, LifeWorld, shown
from support.placed import RESTART_CPU, placed
from support.pods import container, needs, pod

SEPARATOR = "----"


def a_pod(words: str) -> Pod:
    """As the command `pod`."""
    init, regular, options = list[Container](), list[Container](), dict[str, str]()
    for word in words.split():
        if "=" in word:
            name, _, text = word.partition("=")
            options[name] = text
        else:
            made = _container(word)
            (init if made.name[0] == "i" or "*" in word else regular).append(made)
    allowed = int(options["deadline"]) if "deadline" in options else None
    made_pod = pod(
        *regular,
        init=tuple(init),
        restart_policy=options.get("restart", "Always"),
        termination_grace_period_seconds=int(options.get("grace", "30")),
        active_deadline_seconds=allowed,
    )
    return placed(made_pod)


def _container(word: str) -> Container:
    name, _, policy = word.replace("*", "").partition(":")
    if "*" in word:
        return container(name, restart_policy="Always")
    if policy.startswith("!"):
        codes = ContainerRestartRuleOnExitCodes(operator="In", values=(int(policy[1:]),))
        return container(
            name,
            restart_policy="Never",
            restart_policy_rules=(ContainerRestartRule(action="Restart", exit_codes=codes),),
        )
    return container(name, restart_policy=policy)


class LifeTrace:
    """Runs one script; `run` answers the script with what really came of it."""

    def __init__(self) -> None:
        self._world = LifeWorld(a_pod("web"))
        self._shown = ""
        self._one_turn = False

    def run(self, script: str) -> str:
        return "\n\n".join(map(self._block, script.strip("\n").split("\n\n"))) + "\n"

    def _block(self, block: str) -> str:
        lines = block.split("\n")
        given = lines[: lines.index(SEPARATOR)] if SEPARATOR in lines else lines
        commands = [line for line in given if line and not line.startswith("#")]
        if not commands:
            return block
        self._one_turn = False
        if commands[0].startswith("pod "):
            self._world, self._shown = LifeWorld(a_pod(commands.pop(0)[4:])), ""
        first = len(self._world.effects)
        for command in commands:
            self._command(*command.split(" "))
        if self._one_turn:
            try:
                self._world.turn()
            except Killed:
                self._world.kill()
        else:
            self._world.settle()
        return "\n".join([*given, SEPARATOR, *self._told(first)])

    def _told(self, first: int) -> Iterator[str]:
        for number, effect in enumerate(self._world.effects[first:], first):
            if isinstance(effect, do.WriteStatus):
                text = shown(effect.status)
                if text != self._shown:
                    yield f"status {text}"
                self._shown = text
            elif isinstance(effect, do.WakeUp):
                if self._one_turn:
                    yield _wake(effect)
            elif number in self._world.resized:
                yield f"resize {self._world.resized[number]}".rstrip()
            elif line := _line(effect):
                yield line

    def _command(self, name: str, *words: str) -> None:  # noqa: C901  (a list of commands)
        world, who = self._world, words[0] if words else ""
        match name:
            case "at":
                world.seconds = float(who)
            case "exit":
                world.exit(who, int(words[1]))
            case "lose" if who == "sandbox":
                world.lose_sandbox()
            case "lose" if who == "cgroup":
                world.cgroup = False
            case "lose":
                world.lose(who)
            case "unstarted" | "unready" | "unhealthy":
                getattr(world, name).add(world.running(who).id if name == "unhealthy" else who)
            case "obedient":
                world.obedient.add(who)
            case "well":
                for names in (world.unstarted, world.unready, world.unhealthy):
                    names.clear()
            case "fail":
                world.fails[who.replace("-", " ")] = " ".join(words[1:])
            case "mend":
                world.fails.clear()
            case "resize" | "restarting":
                world.change(resized(world.pod, who, words[1].removeprefix("cpu="), restarting=name != "resize"))
            case "delete":
                world.delete(int(who))
            case "gone":
                world.hear(on.ObjectGone())
            case "end":
                world.hear(on.EndWanted(Failure(who, "The node ends it")))
            case "kill" if who:
                world.killed_at = len(world.effects) + int(who)
            case "kill":
                world.kill()
            case "turn":
                self._one_turn = True
            case _:
                raise ValueError(f"unknown command: {name}")


def resized(given: Pod, name: str, cpu: str, *, restarting: bool) -> Pod:
    """The next generation, with another CPU request for the container; `restarting`: its policy has it start anew."""

    def changed(container: Container) -> Container:
        policy = (RESTART_CPU,) if restarting else ()
        return replace(container, resources=needs({"cpu": cpu}), resize_policy=policy)

    containers = tuple(
        changed(container) if container.name == name else container for container in given.spec.containers
    )
    meta = replace(given.metadata, generation=given.metadata.generation + 1)
    return replace(given, metadata=meta, spec=replace(given.spec, containers=containers))


def _wake(effect: do.WakeUp) -> str:
    if effect.exactly is not None and (effect.about is None or effect.exactly < effect.about):
        return f"wake up after {effect.exactly:g} s"
    if effect.about is not None:
        return f"wake up after about {effect.about:g} s"
    return "wait for news" if effect.shortened is None else f"wake up after {effect.shortened:g} s at most"


def _line(effect: Effect | NoteRestarts) -> str:  # noqa: C901  (a list of effects)
    """Empty where nothing changes by it."""
    match effect:
        case do.Emit():
            return f"event {effect.type} {effect.reason} {effect.message}"
        case do.RunSandbox(attempt=attempt):
            return f"sandbox {attempt}"
        case do.StopSandboxes(ids) if ids:
            return f"stop sandboxes: {len(ids)}"
        case do.RemoveSandboxes(ids) if ids:
            return f"remove sandboxes: {len(ids)}"
        case do.StopContainers(groups=groups) if any(groups):
            order = " then ".join(
                " ".join(f"{stop.name}({stop.grace}s)" for stop in group) for group in groups if group
            )
            reasons = dict.fromkeys(stop.message for group in groups for stop in group)
            return f"stop {order}: {'; '.join(reasons)}"
        case NoteRestarts(instances=instances):
            return f"note restarts: {' '.join(instances)}".rstrip(": ")
        case do.StartContainer(attempt=attempt):
            return f"start {effect.container.name} {attempt}"
        case do.RemoveContainers(containers):
            return "remove " + " ".join(f"{container.name} {container.attempt}" for container in containers)
        case do.Interrupt():
            return "interrupt"
        case do.RemoveVolumes() | do.RemoveCgroup() | do.AwaitWritten() | do.ForgetFiles() | do.DeleteObject():
            name = type(effect).__name__
            return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    return ""


def check(path: Path) -> None:
    """With PODFIT_REWRITE_TRACES set the file is written anew, to be read and committed."""
    script = path.read_text()
    really = LifeTrace().run(script)
    if os.environ.get("PODFIT_REWRITE_TRACES"):
        path.write_text(really)
    assert really == script
