"""Simulated usage: curves that a test gives, applied to containers every ten seconds of its clock.

Memory beyond the container's limit ends it as the kernel would, OOMKilled; CPU is held to the limit, as a quota does.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from podfit.core.clock import Clock, Timer
from podfit.core.quantity import Quantity
from podfit.decide.lifecycle.facts import ContainerState
from podfit.kubelet.runtime.simulated import SimulatedRuntime

STEP = 10.0
Curve: TypeAlias = Callable[[float], float] | float | str
"""Cores or bytes: a number, a quantity, or a function of the seconds since the load began."""


class Load(msgspec.Struct, frozen=True):
    """Of the pods with this name, or with names that begin with it and a dash; every container uses this much, or the
    one that is named."""

    namespace: str
    pod: str
    container: str
    cpu: Callable[[float], float]
    memory: Callable[[float], float]
    began: float

    def concerns(self, labels: dict[str, str]) -> bool:
        name = labels.get("io.kubernetes.pod.name", "")
        same = name == self.pod or name.startswith(f"{self.pod}-")
        this = self.container in ("", labels.get("io.kubernetes.container.name"))
        return same and this and labels.get("io.kubernetes.pod.namespace") == self.namespace


def curve(value: Curve) -> Callable[[float], float]:
    if callable(value):
        return value
    amount = Quantity.parse(value).nano / Quantity.of(1).nano if isinstance(value, str) else float(value)
    return lambda _: amount


class Loads:
    """Applies the loads to the containers that run; the newest load of a container counts."""

    def __init__(self, runtimes: Callable[[], tuple[SimulatedRuntime, ...]], clock: Clock) -> None:
        self._runtimes, self._clock = runtimes, clock
        self._loads: list[Load] = []
        self._timer: Timer | None = None

    def add(self, namespace: str, pod: str, container: str, cpu: Curve, memory: Curve) -> None:
        began = self._clock.monotonic()
        self._loads.insert(0, Load(namespace, pod, container, curve(cpu), curve(memory), began))
        self._apply()

    def _apply(self) -> None:
        now = self._clock.monotonic()
        for runtime in self._runtimes():
            for container in runtime.containers():
                load = next((load for load in self._loads if load.concerns(dict(container.labels))), None)
                if load is not None and container.state is ContainerState.RUNNING:
                    runtime.use_cpu(container.id, load.cpu(now - load.began))
                    runtime.use(container.id, int(load.memory(now - load.began)))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(STEP, self._apply)
