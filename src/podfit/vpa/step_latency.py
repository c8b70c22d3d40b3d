"""How long the steps of a component of the VPA take, under upstream's name for each of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from podfit.core.clock import Clock
from podfit.net.metrics import Metrics

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150, 240, 300)


class StepLatency:
    """`with step("total"): ...` measures one."""

    def __init__(self, metrics: Metrics, clock: Clock, component: str, text: str) -> None:
        self._clock = clock
        name = f"vpa_{component}_execution_latency_seconds"
        self._seconds = metrics.histogram(name, text, ("step",), buckets=_SECONDS)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._seconds.labels(name).observe(self._clock.monotonic() - began)
