"""Lists of many pods' metrics, made a few at once."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.metrics.points import Batch, Point, Points
from podfit.metrics.serving import ROOT, MetricsApi
from podfit.net.wire import Request
from support.clock import FakeClock
from support.turns import worst_ms

MANY = 10_000
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


class Known:
    def __init__(self, pods: list[Pod]) -> None:
        self._pods = pods

    def list(self, namespace: str) -> list[Pod]:
        return self._pods


@pytest.fixture(scope="module")
def api() -> MetricsApi:
    names = [f"p{number}" for number in range(MANY)]
    points = Points(15.0)
    for time in (1000.0, 1015.0):
        points.store(Batch({}, {("d", name): {"c": Point(1.0, time, int(time) * 1_000_000, 5)} for name in names}))
    pods: Any = Known([codec.convert({"metadata": {"name": name, "namespace": "d"}}, Pod) for name in names])
    return MetricsApi(points, pods, pods, clock=FakeClock())


@pytest.mark.parametrize("headers", [{}, TABLE])
@pytest.mark.parametrize(("selector", "there"), [("", True), ("a=b", False)])
async def test_a_long_list_does_not_hold_the_event_loop_up(
    api: MetricsApi, headers: dict[str, str], selector: str, *, there: bool
) -> None:
    async def asked() -> None:
        answer = await api(Request("GET", f"{ROOT}/pods", {"labelSelector": (selector,)}, headers))
        assert isinstance(answer.body, bytes)
        assert (b'"p9999"' in answer.body) is there

    assert await worst_ms(asked, most=50) < 50
