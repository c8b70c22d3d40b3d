"""A node on the simulated runtime whose calls fail, hang or are answered late, by name.

node.runtime.kinds["update_container_resources"] = "lost"

refused   the runtime says no
gone      nobody answers, at once
hung      nobody answers until the deadline; nothing was done
lost      it was done, and nobody answers
late      it is done and answered, five seconds later
"""

from collections import Counter
from typing import Any, Literal, get_args

from kubelet.harness import Node, container
from kubelet.node_api import Document
from podfit.core.clock import Clock
from podfit.core.quantity import Quantity
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus, SandboxState
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.runtime.simulated import SimulatedRuntime

Kind = Literal["refused", "gone", "hung", "lost", "late"]
KINDS: tuple[Kind, ...] = get_args(Kind)
READS = ("list_sandboxes", "sandbox_status", "list_containers", "container_status", "image_status", "container_stats")
WRITES = (
    "run_sandbox",
    "stop_sandbox",
    "remove_sandbox",
    "create_container",
    "start_container",
    "stop_container",
    "remove_container",
    "update_container_resources",
)
DEADLINE, LATE = 30.0, 5.0
CAPACITY = 4000  # milli-CPUs


class FaultyRuntime:
    """The runtime behind it is `real`; the test looks at it without faults."""

    def __init__(self, real: SimulatedRuntime, clock: Clock) -> None:
        self.real = real
        self.kinds: dict[str, Kind] = {}
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)
        if name not in (*READS, *WRITES):
            return method

        async def call(*given: Any, **named: Any) -> Any:
            match self.kinds.get(name):
                case "refused":
                    raise CRIError(f"{name} refused")
                case "gone":
                    raise Unavailable("connection refused")
                case "hung":
                    await self._clock.sleep(DEADLINE)
                    raise Unavailable(f"{name}: the runtime did not answer within 30 s")
                case "lost":
                    await method(*given, **named)
                    raise Unavailable("connection reset")
                case "late":
                    await self._clock.sleep(LATE)
            return await method(*given, **named)

        return call


class FaultyNode(Node):
    """Four CPUs. `exits` counts the containers that a test ended, by pod."""

    runtime: Any
    cgroups: Any

    def make_machine(self) -> None:
        self.cgroups = MemoryCgroups()
        self.runtime = FaultyRuntime(SimulatedRuntime(self.clock, self.cgroups), self.clock)
        self.exits: Counter[str] = Counter()

    async def advance(self, seconds: float) -> None:
        """In steps, because a checkpoint is written by a thread, for which the clock does not wait."""
        while seconds > 0:
            step = min(seconds, 1.0 if seconds <= 60 else 10.0)
            await super().advance(step)
            seconds -= step

    def give(self, name: str, cpu: str, memory: str = "64Mi") -> Document:
        """A pod with one container of that size, or another size for it."""
        amounts = {"cpu": cpu, "memory": memory}
        containers = [container("c1", resources={"requests": amounts, "limits": amounts})]
        if self.api.get("pods", name) is None:
            return self.add(name, uid=f"{name}-{self.api.revision}", containers=containers)
        return self.api.change(name, containers=containers)

    def live(self, name: str = "web") -> ContainerStatus | None:
        """The running container of a pod."""
        uid = (self.api.get("pods", name) or {"metadata": {"uid": ""}})["metadata"]["uid"]
        runtime = self.runtime.real
        boxes = {key for key, (status, _) in runtime._sandboxes.items() if status.uid == uid}
        found = (status for status, _, box in runtime._containers.values() if box in boxes)
        return next((container for container in found if container.state is ContainerState.RUNNING), None)

    def end(self, name: str, *, oom: bool = False) -> bool:
        """Its container crashes, or is killed for want of memory; False when none runs."""
        status = self.live(name)
        if status is None:
            return False
        self.exits[self.uid(name)] += 1
        self.runtime.real.end(status.id, 137 if oom else 1, reason="OOMKilled" if oom else "")
        return True

    def uid(self, name: str) -> str:
        pod = self.api.get("pods", name)
        assert pod is not None
        return str(pod["metadata"]["uid"])

    async def settle(self, *, longest: float = 900) -> None:
        """With every fault gone: let time pass until each pod has what it wants, or waits for room."""
        self.runtime.kinds.clear()
        self.api.down = False
        passed, seconds = 0.0, 30.0
        while True:
            await self.advance(seconds)
            passed, seconds = passed + seconds, 100.0
            problems = self.problems()
            if not problems or passed >= longest:
                assert not problems, problems
                return

    # ------------------------------------------------------------------ what has to hold

    def problems(self) -> list[str]:
        """desired = allocated = actual where it fits, Deferred with a true reason where not, and nothing left over."""
        known = self.api.listed("pods")
        pods = [pod for pod in known if not _never_admitted(pod)]
        return [text for pod in pods for text in self._wrong_with(pod, pods)] + self._leaked(pods)

    def _wrong_with(self, pod: Document, pods: list[Document]) -> list[str]:
        name, status = pod["metadata"]["name"], pod.get("status", {})
        wrong: list[str] = []
        state: Document = next(iter(status.get("containerStatuses", [])), {})
        live = self.live(name)
        if status.get("phase") != "Running" or live is None or "running" not in state.get("state", {}):
            return [f"{name} does not run: {status.get('phase')} {status.get('message')} {state.get('state')}"]
        desired = pod["spec"]["containers"][0]["resources"]
        conditions = {
            condition["type"]: condition
            for condition in status["conditions"]
            if condition["type"].startswith("PodResize")
        }
        pending = conditions.pop("PodResizePending", None)
        if conditions:
            wrong.append(f"{name} has {conditions}")
        if pending is None and not _same(state["allocatedResources"], desired["requests"]):
            wrong.append(f"{name} wants {desired['requests']} and has {state['allocatedResources']}")
        if pending is not None and pending["message"] != self._refusal(pod, pods):
            wrong.append(f"{name} says {pending['message']!r}, and not {self._refusal(pod, pods)!r}")
        if not _same(state["resources"]["requests"], state["allocatedResources"]):
            wrong.append(f"{name} was promised {state['allocatedResources']} and reports {state['resources']}")
        if status["observedGeneration"] != pod["metadata"]["generation"]:
            wrong.append(f"{name} is at generation {status['observedGeneration']} of {pod['metadata']['generation']}")
        restarts = self.exits[pod["metadata"]["uid"]]
        if state["restartCount"] != restarts:
            wrong.append(f"{name} was ended {restarts} times and restarted {state['restartCount']} times")
        return wrong + self._wrong_in_kernel(pod, state["allocatedResources"], live)

    def _wrong_in_kernel(self, pod: Document, allocated: Document, live: ContainerStatus) -> list[str]:
        name = pod["metadata"]["name"]
        quota, memory = _milli(allocated) * 100, Quantity.parse(allocated["memory"]).value()
        group = self.cgroups.layout.pod(pod["metadata"]["uid"], "Burstable")
        told = live.resources
        assert told is not None
        values = {
            "runtime": (told.cpu_quota, told.memory_limit),
            "container": self._values(f"{group}/{live.id}"),
            "pod": self._values(group),
        }
        return [
            f"{name}: {where} has {has}, not {(quota, memory)}"
            for where, has in values.items()
            if has != (quota, memory)
        ]

    def _values(self, path: str) -> tuple[int | None, int | None]:
        return self.cgroups.read_cpu(path).quota, self.cgroups.read_memory(path)

    def _refusal(self, pod: Document, pods: list[Document]) -> str:
        """What a true refusal says; empty when there is room."""
        used = sum(
            _milli(other["status"]["containerStatuses"][0]["allocatedResources"]) for other in pods if other != pod
        )
        asked = _milli(pod["spec"]["containers"][0]["resources"]["requests"])
        if used + asked <= CAPACITY:
            return ""
        return f"Node didn't have enough resource: cpu, requested: {asked}, used: {used}, capacity: {CAPACITY}"

    def _leaked(self, pods: list[Document]) -> list[str]:
        uids = {pod["metadata"]["uid"] for pod in pods}
        groups = {pod.uid for pod in self.cgroups.list_pods()}
        """Of a sandbox that was made anew the one before is kept, stopped, as of containers."""
        statuses = [status for status, _ in self.runtime.real._sandboxes.values()]
        boxes = Counter(status.uid for status in statuses if status.state is SandboxState.READY)
        stopped = Counter(status.uid for status in statuses if status.state is not SandboxState.READY)
        stray = [box for _, _, box in self.runtime.real._containers.values() if box not in self.runtime.real._sandboxes]
        wrong = [] if groups == uids else [f"cgroups of {groups}, pods are {uids}"]
        wrong += [] if boxes == Counter(uids) else [f"sandboxes {boxes}, pods are {uids}"]
        wrong += [
            f"{count} stopped sandboxes of {uid}" for uid, count in stopped.items() if count > 1 or uid not in uids
        ]
        instances = Counter(box for _, _, box in self.runtime.real._containers.values())
        wrong += [f"{count} instances in {box}" for box, count in instances.items() if count > 2]
        return wrong + ([f"containers without a sandbox: {stray}"] if stray else [])


def _never_admitted(pod: Document) -> bool:
    """A pod for which there was no room when it came, so that it failed without having begun."""
    status = pod.get("status", {})
    begun = any("containerID" in container for container in status.get("containerStatuses", []))
    return status.get("reason") == "OutOfcpu" and not begun


def _same(one: Document, other: Document) -> bool:
    return {name: Quantity.parse(text) for name, text in one.items()} == {
        name: Quantity.parse(text) for name, text in other.items()
    }


def _milli(amounts: Document) -> int:
    return Quantity.parse(amounts["cpu"]).milli()
