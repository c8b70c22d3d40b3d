"""What a plan says of a resize beside its verdict: which containers restart, and whether they would live with it.

What the node does is the node machine's (`answers.node.virtual_time`); here it is put into words.
"""

import msgspec

from podfit.answers.facts.readable import readable
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.node.virtual_time import actuation, running
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.cgroup.container_resources import effective
from podfit.decide.pod.allocated import resizable
from podfit.decide.resize import steps as resize_steps
from podfit.decide.resize.restart_policy import restarting

START = Quantity.of_bytes(6 << 20)
"""With a lower memory limit runc may not get as far as to start a container; Docker refuses to try for that reason."""


class Restart(msgspec.Struct, frozen=True):
    container: str
    why: str


class Effects:
    """The effects of a resize on one pod: `new` as the API would store it, `old` as it is stored now."""

    def __init__(self, new: Pod, old: Pod, snapshot: Snapshot) -> None:
        self._new, self._gates = new, snapshot.age.gates
        self._usage = (snapshot.usage or {}).get((old.metadata.namespace, old.metadata.name))
        self._live = running(old)
        self._done = actuation(new, old, self._gates, snapshot.usage)
        self.refused = self._done.refused

    def restarts(self) -> tuple[Restart, ...]:
        containers = resizable(self._new, self._gates)
        return tuple(Restart(c.name, self._policies(c)) for c in containers if c.name in self._done.restarts)

    def _policies(self, container: Container) -> str:
        """The policies of those resources of the container that change."""
        new, before = effective(self._new, container), self._done.actuated.containers[container.name]
        changed = [resource for resource in restarting(container) if resize_steps.differs(new, before, resource)]
        return f"resizePolicy {', '.join(changed)}: RestartContainer"

    def crashes(self) -> str:
        """Why a container would not live with its new memory limit; empty when nothing speaks for it."""
        return "; ".join(filter(None, map(self._too_tight, resizable(self._new, self._gates))))

    def _too_tight(self, container: Container) -> str:
        name, limit = container.name, container.resources.limits.get("memory", ZERO)
        if not limit or limit == self._before(name):
            return ""
        starts = name not in self._live or name in self._done.restarts
        used = (self._usage or {}).get(name, 0)
        if limit < START and (starts or name not in (self._usage or {})):
            what = "may not start" if starts else "may not run"
            return f'container "{name}" {what} with a memory limit of {readable(limit.value())}: less than {START}'
        if starts and used >= limit.value():
            now = readable(used)
            text = f"restarted with a memory limit of {readable(limit.value())} it may be killed (OOMKilled)"
            return f'container "{name}" uses {now} of memory: {text}'
        return ""

    def shrink(self) -> str:
        """What is known of the memory that limits which become lower have to hold."""
        lowered = self._done.lowered.containers
        if not lowered:
            return ""
        if self._usage is None:
            return "memory usage is not known here; the node compares it with the new limit first"
        shares = (
            f"{name} uses {100 * self._usage.get(name, 0) // limit} %" for name, limit in lowered.items() if limit
        )
        tiny = any(limit < START.value() for limit in lowered.values() if limit is not None)
        again = f"; started again with less than {START} it may not run" if tiny else ""
        kind = "lower" if all(self._before(name) for name in lowered) else "new"
        return f"{', '.join(shares)} of the {kind} memory limit{again}"

    def _before(self, name: str) -> Quantity:
        return self._done.actuated.containers[name].limits.get("memory", ZERO)
