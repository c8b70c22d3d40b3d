"""What others write is bounded: checkpoints, usage, histories, targets and selectors."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from podfit.api.autoscaling_k8s.v1 import (
    CrossVersionObjectReference,
    HistogramCheckpoint,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpointStatus,
)
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.scales import KINDS_SECONDS
from podfit.client.targets import Targets, Unsupported
from podfit.client.transport import Local
from podfit.core.selectors import from_map
from podfit.core.times import format_time
from podfit.decide.autoscaling import checkpoints
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.gates import NO_GATES
from podfit.decide.autoscaling.model import LARGEST
from podfit.decide.autoscaling.quality import Quality
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.decide.autoscaling.validation import MOST_POLICIES, validate
from podfit.net.wire import Request, Response
from podfit.vpa.history import promql
from podfit.vpa.history.prometheus import History, HistorySettings, queries, read_history
from podfit.vpa.history.promql import PromQL, QueryFailed, Series
from podfit.vpa.history.replay import fill, replay
from podfit.vpa.recommender.checkpoints import Checkpoints
from podfit.vpa.recommender.pods import Pods
from podfit.vpa.recommender.usage import Sample
from support.clock import FakeClock
from support.server import ADMIN
from support.turns import worst_ms
from support.vpa_world import NAMESPACE, World, recommending

VPA, POD = VpaKey(NAMESPACE, "web"), PodKey(NAMESPACE, "web-1")
LATER = "9999-12-31T23:59:59Z"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


def state(clock: FakeClock) -> ClusterState:
    found = ClusterState()
    found.set_vpa(VPA, from_map({"app": "web"}), None)
    found.set_pod(POD, {"app": "web"}, ["app"], clock.now().timestamp())
    return found


def checkpoint(clock: FakeClock, **changes: Any) -> dict[str, Any]:
    now = format_time(clock.now())
    histogram = {"referenceTimestamp": now, "bucketWeights": {"10": 10000}, "totalWeight": 1.0}
    status = {
        "version": "v3",
        "firstSampleStart": now,
        "lastSampleStart": now,
        "totalSamplesCount": 10,
        "cpuHistogram": {**histogram, **changes.pop("cpu", {})},
        "memoryHistogram": histogram,
        **changes,
    }
    spec = {"vpaObjectName": "web", "containerName": "app"}
    return {"metadata": {"name": "web-app", "namespace": NAMESPACE}, "spec": spec, "status": status}


# ---------------------------------------------------------------- checkpoints


@pytest.mark.row("V-037")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cpu": {"totalWeight": 1e300}}, "totalWeight must be a number from 0 to 1e\\+60"),
        ({"cpu": {"totalWeight": -1.0}}, "totalWeight must be"),
        ({"cpu": {"bucketWeights": {"10": 2**40}}}, "must be a whole number from 0 to 4294967295"),
        ({"cpu": {"bucketWeights": {"10": -1}}}, "must be a whole number"),
        ({"cpu": {"bucketWeights": {"10": 1.5}}}, "must be a whole number"),
        ({"cpu": {"bucketWeights": {"10": True}}}, "must be a whole number"),
        ({"cpu": {"bucketWeights": {"999": 1}}}, "bucket 999, out of range"),
        ({"cpu": {"bucketWeights": {"-1": 1}}}, "bucket -1, out of range"),
        ({"cpu": {"bucketWeights": {"1e1": 1}}}, "invalid literal"),
        ({"cpu": {"bucketWeights": {"9" * 5000: 1}}}, "Exceeds the limit"),
        ({"cpu": {"referenceTimestamp": LATER}}, "cpuHistogram.referenceTimestamp .* is yet to come"),
        ({"lastSampleStart": LATER}, "lastSampleStart .* is yet to come"),
        ({"firstSampleStart": LATER}, "firstSampleStart .* is yet to come"),
        ({"totalSamplesCount": -1}, "totalSamplesCount must be at least 0"),
    ],
)
def test_a_hostile_checkpoint_is_refused_and_changes_nothing(changes: dict[str, Any], why: str) -> None:
    clock = FakeClock()
    found = state(clock)
    found.add_sample(POD, "app", clock.now().timestamp(), cpu=500, memory=10**9)
    before = found.recommend({VPA: {}})
    status = convert(checkpoint(clock, **changes)["status"], VerticalPodAutoscalerCheckpointStatus)
    (row,) = found.model.aggregates.new(1, clock.now().timestamp()).tolist()
    with pytest.raises(ValueError, match=why):
        checkpoints.restore(found.model.aggregates, row, status, clock.now().timestamp())
    assert found.recommend({VPA: {}}) == before


def test_the_reference_of_a_checkpoint_may_be_half_a_day_ahead() -> None:
    clock = FakeClock()
    ahead = format_time(clock.now() + timedelta(hours=12))
    status = convert(
        checkpoint(clock, cpu={"referenceTimestamp": ahead})["status"], VerticalPodAutoscalerCheckpointStatus
    )
    found = state(clock).model.aggregates
    checkpoints.restore(found, 0, status, clock.now().timestamp())
    assert found.count[0] == 10
    assert isinstance(status.cpu_histogram, HistogramCheckpoint)


class Pages:
    """A server that lists these checkpoints, each on a page of its own."""

    random = None

    def __init__(self, *items: Any) -> None:
        self._items, self.asked = items, list[str]()

    async def request(self, method: str, path: str, body: bytes = b"", *, query: dict[str, str]) -> bytes:
        place = int(query.get("continue", "0"))
        self.asked.append(f"{method} {path}")
        more = str(place + 1) if place + 1 < len(self._items) else ""
        return json.dumps({"metadata": {"continue": more}, "items": [self._items[place]]}).encode()


async def test_a_checkpoint_that_cannot_be_read_keeps_no_other_from_being_loaded() -> None:
    clock = FakeClock()
    found = state(clock)
    unreadable = [
        checkpoint(clock, totalSamplesCount=10**30),
        checkpoint(clock, cpu={"totalWeight": "much"}),
        checkpoint(clock, lastSampleStart="yesterday"),
        {"spec": 7},
        "nothing",
    ]
    pages = Pages(*unreadable, checkpoint(clock))
    checkpoints = Checkpoints(cast(Client, pages), clock, found)
    checkpoints.restore(await checkpoints.list_with_retries())
    assert pages.asked[0] == "GET /apis/autoscaling.k8s.io/v1/verticalpodautoscalercheckpoints"
    assert len(pages.asked) == 6
    assert found.members([VPA]).names == [(VPA, "app")]
    assert len(found.members([VPA]).rows) == 2


# ---------------------------------------------------------------- usage


async def test_usage_of_the_future_and_below_nothing_is_not_counted(world: World) -> None:
    clock = world.clock
    found = state(clock)
    pods = Pods(world.client, clock, found, quality=Quality(()))
    now = clock.now().timestamp()
    pods.count([Sample(POD, "app", now + 10 * 365 * 86_400, 10**6, 10**12), Sample(POD, "app", now, -5, -5)])
    assert found.model.aggregates.count.sum() == 0
    pods.count([Sample(POD, "app", now + 60, 500, 10**9), Sample(POD, "app", now + 120, 10**30, 10**40)])
    assert found.model.aggregates.count.sum() == 2
    assert np.isfinite(found.model.aggregates.memory.weights).all()
    upper = found.recommend({VPA: {}})[VPA].container_recommendations[0].upper_bound
    assert max(upper["cpu"].milli(), upper["memory"].value()) <= LARGEST


class Told:
    """A PromQL server that answers every query with the same values of one container."""

    def __init__(self, *values: tuple[float, str]) -> None:
        metric = {"namespace": NAMESPACE, "pod_name": "web-1", "name": "app"}
        self._series = (Series(metric=metric, values=values),)

    async def range(self, query: str, begin: float, end: float, step: float) -> AsyncIterator[Series]:
        assert query in queries(HistorySettings())
        for series in self._series:
            yield series

    async def instant(self, query: str) -> AsyncIterator[Series]:
        yield Series(metric={"kubernetes_namespace": NAMESPACE})


async def test_a_history_of_what_is_no_amount_is_left_out() -> None:
    clock = FakeClock()
    now, found = clock.now().timestamp(), state(clock)
    odd = ["NaN", "+Inf", "-Inf", "-1", "much", "", "9" * 400, "1e308", "0.5"]
    server = Told(
        (now + 1e300, "0.5"), (-1e300, "0.5"), *((now - 60.0 * place, text) for place, text in enumerate(odd))
    )
    history = await read_history(cast(PromQL, server), HistorySettings(), now)
    assert sorted(amount.amount for amount in history.cpu) == [0.5, LARGEST]
    assert replay(found, history) == 4
    assert isinstance(history, History)
    (made,) = next(iter(dict(found.checkpoints([VPA], now)).values()))
    assert made.status.total_samples_count == 120


# ---------------------------------------------------------------- targets


class Heard(Local):
    """Remembers what is asked for."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server.api.handler, ADMIN)
        self.paths: list[str] = []

    async def send(self, request: Request) -> Response:
        self.paths.append(request.path)
        return await super().send(request)


@pytest.mark.parametrize(
    "name", ["../../../kube-system/deployments/dns", "x?watch=1#", "x/../../secrets/y", "{namespace}"]
)
@pytest.mark.parametrize("version", ["example.com/v1", "../../api/v1", "../../api/v1/namespaces/kube-system/v1"])
async def test_a_target_is_asked_for_where_its_vpa_is(world: World, name: str, version: str) -> None:
    heard = Heard(world)
    targets = Targets(Client(heard), world.clock)
    with pytest.raises(Unsupported):
        await targets.selector(NAMESPACE, CrossVersionObjectReference(kind="Rack", name=name, api_version=version))
    assert set(heard.paths) <= {"/apis/example.com"}


async def test_kinds_that_nobody_has_are_forgotten(world: World) -> None:
    targets = Targets(world.client, world.clock)
    for number in range(20):
        ref = CrossVersionObjectReference(kind=f"K{number}", name="x", api_version=f"g{number}.example.com/v1")
        with pytest.raises(Unsupported):
            await targets.selector(NAMESPACE, ref)
    assert targets.scales.remembered == 20
    await world.clock.advance(KINDS_SECONDS + 1)
    targets.scales.forget_old()
    assert targets.scales.remembered == 0


@pytest.mark.row("V-004")
def test_a_vpa_with_more_policies_than_a_pod_has_containers_is_refused() -> None:
    policies = [{"containerName": f"c{number}"} for number in range(MOST_POLICIES + 1)]
    spec = {"targetRef": {"kind": "Deployment", "name": "web"}, "resourcePolicy": {"containerPolicies": policies}}
    errors = validate(convert({"spec": spec}, VerticalPodAutoscaler), None, NO_GATES)
    assert [(error.field, error.cause()["reason"]) for error in errors] == [
        ("spec.resourcePolicy.containerPolicies", "FieldValueTooMany")
    ]


def answer(series: int, samples: int) -> tuple[msgspec.Raw, ...]:
    """Of a query, still encoded."""
    values = tuple((1000.0 + place, "0.5") for place in range(samples))
    metric = {"namespace": NAMESPACE, "name": "app"}
    return tuple(
        msgspec.Raw(msgspec.json.encode(Series(metric={**metric, "pod_name": f"web-{number}"}, values=values)))
        for number in range(series)
    )


class Asked(PromQL):
    """Answers every query with the same."""

    def __init__(self, encoded: tuple[msgspec.Raw, ...]) -> None:
        super().__init__("http://127.0.0.1:1", FakeClock())
        self._answer = encoded

    async def _ask(self, verb: str, parameters: dict[str, str]) -> tuple[msgspec.Raw, ...]:
        return self._answer


async def test_a_long_history_is_read_and_replayed_a_little_in_each_turn() -> None:
    server, kept = Asked(answer(1000, 192)), list[object]()

    async def replayed() -> None:
        history = await read_history(server, HistorySettings(), 1500.0)
        assert await fill(state(FakeClock()), history, 1500.0) >= 0
        kept.append(history)  # to free it takes a turn, too, which is none of the reader's
        assert len(history.cpu) == 192_000
        assert [amount.time for amount in history.cpu[:: 192_000 // 4]] == [1000.0, 1048.0, 1096.0, 1144.0]

    assert await worst_ms(replayed, most=50, tries=5) < 50
    await server.close()


@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        (answer(1, 80_000), "a series is larger than 1048576 bytes"),
        (answer(11, 100), "more than 1000 samples"),
        ((msgspec.Raw(b"[]"),), "Expected `object`"),
    ],
    ids=["one series", "samples", "no series"],
)
async def test_what_no_server_answers_is_refused(
    monkeypatch: pytest.MonkeyPatch, encoded: tuple[msgspec.Raw, ...], why: str
) -> None:
    monkeypatch.setattr(promql, "MOST_SAMPLES", 1000)
    server = Asked(encoded)
    with pytest.raises(QueryFailed, match=why):
        await read_history(server, HistorySettings(), 1500.0)
    await server.close()
