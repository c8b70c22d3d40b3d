"""Usage from external.metrics.k8s.io: what is asked, and what a recommender makes of the answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta.codec import convert
from podfit.core.selectors import Requirement, Selector, as_text
from podfit.core.times import format_time
from podfit.net.wire import Request, Response
from podfit.process.config_file import read
from podfit.process.errors import UsageError
from podfit.process.vpa.recommender import RecommenderOptions
from podfit.vpa.recommender.external_usage import ExternalMetrics
from support.vpa_world import World, recommending

GROUP = "external.metrics.k8s.io"
METRICS = ExternalMetrics(cpu="used_cores", memory="used bytes", container_label="container")


class Adapter:
    """Answers by the metric's name with a value, or not at all."""

    def __init__(self, world: World) -> None:
        self._world, self.values = world, dict[str, Any]()
        self.asked: set[tuple[str, str]] = set()

    async def answer(self, request: Request) -> Response:
        metric = request.path.rpartition("/")[2]
        body: dict[str, Any] = {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1beta1", "resources": []}
        if "/namespaces/" in request.path:
            self.asked.add((request.path, request.query["labelSelector"][0]))
            if metric not in self.values:
                return Response(500, {"content-type": "application/json"}, b"{}")
            body = {"kind": "ExternalMetricValueList", "metadata": {}, "items": self._items(self.values[metric])}
        return Response(200, {"content-type": "application/json"}, json.dumps(body).encode())

    def _items(self, value: str) -> list[dict[str, Any]]:
        when = format_time(self._world.clock.now())
        labels: tuple[dict[str, str], ...] = ({"container": "app"}, {"container": ""}, {})
        return [{"metricName": "m", "metricLabels": own, "timestamp": when, "value": value} for own in labels]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


@pytest.fixture
async def adapter(world: World) -> Adapter:
    made = Adapter(world)
    world.usage.beside["adapter"] = made.answer
    service = {"namespace": "kube-system", "name": "adapter"}
    spec = {"group": GROUP, "version": "v1beta1", "service": service, "insecureSkipTLSVerify": True}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
    document = {"metadata": {"name": f"v1beta1.{GROUP}"}, "spec": {**spec, **priorities}}
    await world.client.create(convert(document, APIService))
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.pod("other-1", "other")
    await world.vpa("web")
    return made


async def test_vpa_recommends_by_external_metrics(world: World, adapter: Adapter) -> None:
    adapter.values = {"used_cores": "500m", "used%20bytes": "400Mi"}
    world.usage.used = {"web-1": {"app": ("4", "4Gi")}}
    await world.start(external=METRICS)
    await world.minutes(3)
    found = (await world.sizes("web"))["app"].target
    assert 500 < found["cpu"].milli() < 700
    assert 400 < found["memory"].value() / 2**20 < 560
    path = f"/apis/{GROUP}/v1beta1/namespaces/default"
    terms = "app in (web),pod=web-1"
    assert adapter.asked == {(f"{path}/used_cores", terms), (f"{path}/used%20bytes", terms)}


async def test_vpa_without_an_external_metric_keeps_what_it_knows(world: World, adapter: Adapter) -> None:
    adapter.values = {"used_cores": "500m"}
    await world.start(external=METRICS)
    await world.minutes(3)
    before = (await world.sizes("web"))["app"].target
    assert set(before) == {"cpu"}
    adapter.values = {}
    await world.minutes(5)
    assert (await world.sizes("web"))["app"].target == before


def test_a_selector_is_written_as_it_is_read() -> None:
    terms = (Requirement("a", "In", ("x", "y")), Requirement("b", "NotIn", ("z",)), Requirement("c", "Exists"))
    more = (Requirement("d", "DoesNotExist"), Requirement("e", "Gt", ("3",)), Requirement("f", "Lt", ("4",)))
    assert as_text(Selector((*terms, *more))) == "a in (x,y),b notin (z),c,!d,e > 3,f < 4"


@pytest.mark.row("V-120")
def test_vpa_external_metrics_need_a_name() -> None:
    assert read(RecommenderOptions, {"external-metrics-cpu-metric": "m"}).recommender().external is None
    with pytest.raises(UsageError, match="name one with --external-metrics-cpu-metric"):
        read(RecommenderOptions, {"use-external-metrics": True}).recommender()
    flags = {"use-external-metrics": True, "external-metrics-memory-metric": "m", "container-name-label": "container"}
    assert read(RecommenderOptions, flags).recommender().external == ExternalMetrics(
        memory="m", container_label="container"
    )
