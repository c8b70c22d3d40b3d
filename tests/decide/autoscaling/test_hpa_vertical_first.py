"""`podfit.dev/scale: vertical-first`: pods grow before replicas are added, and shrink after replicas are gone."""

from typing import Any

import msgspec
import pytest

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.decide.autoscaling.horizontal.asked_size import ASKED, CONDITION, Ask, asks, split
from podfit.decide.autoscaling.horizontal.keep_point import SCALE
from podfit.decide.autoscaling.horizontal.model import Memory, Need, Outcome, Recommendation, Sample, Settings, View
from podfit.decide.autoscaling.horizontal.passing import finish, propose
from podfit.decide.autoscaling.horizontal.vertical_first import PATIENCE, RETRY
from podfit.decide.autoscaling.nodes_and_autoscalers import HELD, around, beside_autoscalers

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
NOW, WINDOW = 2e9, 300.0
STAMP = "2026-01-01T00:00:00Z"


def hpa(*asked: Ask, ours: bool = True, mode: str = "vertical-first", **spec: Any) -> HorizontalPodAutoscaler:
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    whole = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 50, "metrics": [metric], **spec}
    notes = {SCALE: mode}
    if asked:
        notes[ASKED] = msgspec.json.encode({"cpu": asked[0]}).decode()
    metadata = {"name": "web", "namespace": "shop", "annotations": notes, "generation": 1}
    status: dict[str, Any] = {"observedGeneration": 1} if ours else {}
    return convert({"metadata": metadata, "spec": whole, "status": status}, HorizontalPodAutoscaler)


def vpa(most: str = "400m", mode: str = "InPlaceOrRecreate", **policy: Any) -> VerticalPodAutoscaler:
    policies = [
        {"containerName": "app", "maxAllowed": {"cpu": most}, **policy},
        {"containerName": "side", "mode": "Off"},
    ]
    spec = {
        "targetRef": TARGET,
        "updatePolicy": {"updateMode": mode},
        "resourcePolicy": {"containerPolicies": policies},
    }
    return convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, VerticalPodAutoscaler)


def pods(request: int, number: int = 2, side: int = 0) -> list[Pod]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00Z"}
    status = {"phase": "Running", "startTime": "2000-01-01T00:00:00Z", "conditions": [ready]}
    containers = [{"name": "app", "image": "i", "resources": {"requests": {"cpu": f"{request}m"}}}]
    if side:
        containers.append({"name": "side", "image": "i", "resources": {"requests": {"cpu": f"{side}m"}}})
    spec = {"containers": containers, "nodeName": "n1"}
    return [convert({"metadata": {"name": f"web-{i}"}, "spec": spec, "status": status}, Pod) for i in range(number)]


def passed(
    autoscaler: HorizontalPodAutoscaler,
    running: list[Pod],
    usage: int,
    *,
    now: float = NOW,
    room: int = 10_000,
    vpas: tuple[VerticalPodAutoscaler, ...] | None = None,
    memory: Memory | None = None,
    settings: Settings | None = None,
) -> Outcome:
    """A pass where each pod uses so much and may grow by `room`."""
    view = View(
        autoscaler=autoscaler,
        replicas=len(running),
        reported=len(running),
        selector="app=web",
        pods=running,
        vpas=(vpa(),) if vpas is None else vpas,
        room={pod.metadata.name: {"cpu": room} for pod in running},
        memory=memory or Memory(),
        settings=settings or Settings(upstream_compatible=False),
    )
    samples = {pod.metadata.name: Sample(usage, now, 15) for pod in running}
    return finish(propose(view, [samples], now), now)


def asked(outcome: Outcome) -> Ask | None:
    text = outcome.annotations.get(ASKED)
    return None if text is None else msgspec.json.decode(text, type=dict[str, Ask])["cpu"]


def said(outcome: Outcome) -> tuple[str, str]:
    found = [condition for condition in outcome.status.conditions if condition.type == CONDITION]
    return (found[0].status, found[0].message) if found else ("", "")


def test_hpa_asks_for_a_larger_size_and_waits() -> None:
    """80m at 50 % are 160m each."""
    outcome = passed(hpa(), pods(100), 80)
    assert (outcome.desired, asked(outcome)) == (2, Ask(160, 100, NOW))
    held, text = said(outcome)
    assert held == "True"
    assert text.startswith(
        "cpu: VerticalPodAutoscaler web is to grow pods from 100m to 160m; replicas wait for it until"
    )


def test_hpa_adds_replicas_when_pods_are_as_large_as_they_may_be() -> None:
    outcome = passed(hpa(), pods(400), 400)
    assert (outcome.desired, asked(outcome)) == (4, None)
    assert said(outcome) == (
        "False",
        "cpu: pods stay at 400m, which is all that VerticalPodAutoscaler web allows, so replicas are added",
    )
    outcome = passed(hpa(), pods(100), 80, room=0)
    assert outcome.desired == 4
    assert said(outcome) == (
        "False",
        "cpu: pods stay at 100m, since their nodes have no room for more, so replicas are added",
    )


@pytest.mark.parametrize(("usage", "room", "size"), [(80, 30, 130), (300, 10_000, 400), (300, 200, 300)])
def test_hpa_asks_for_no_more_than_nodes_and_vpa_allow(usage: int, room: int, size: int) -> None:
    outcome = passed(hpa(), pods(100), usage, room=room)
    ask = asked(outcome)
    assert outcome.desired == 2
    assert ask is not None
    assert sum(split(ask.size, {"app": 100}, "cpu", vpa().spec.resource_policy).values()) == size


def test_hpa_with_all_its_replicas_asks_for_more_than_nodes_have_room_for() -> None:
    """A resize that waits makes room, moves a neighbour or brings a node; who asks for nothing gets nothing."""
    for now in (NOW, NOW + PATIENCE):
        outcome = passed(hpa(maxReplicas=2), pods(100), 80, room=0, now=now)
        assert (outcome.desired, asked(outcome)) == (2, Ask(160, 100, now))
        text = "cpu: VerticalPodAutoscaler web is to grow pods from 100m to 160m, also where that has to wait for room"
        assert said(outcome) == ("False", f"{text}, as no replica may be added")
    outcome = passed(hpa(maxReplicas=2), pods(400), 400, room=0)
    assert asked(outcome) is None
    text = "cpu: pods stay at 400m, which is all that VerticalPodAutoscaler web allows, and no replica may be added"
    assert said(outcome) == ("False", text)


def test_hpa_waits_for_a_vpa_only_so_long() -> None:
    first = Ask(160, 100, NOW)
    assert passed(hpa(first), pods(100), 80, now=NOW + PATIENCE - 1).desired == 2
    late = passed(hpa(first), pods(100), 80, now=NOW + PATIENCE)
    assert late.desired == 4
    assert said(late)[1].endswith(
        "did not grow from 100m to 160m by VerticalPodAutoscaler web within 180 s, so replicas are added"
    )
    again = passed(hpa(first), pods(100), 80, now=NOW + RETRY)
    assert (again.desired, asked(again)) == (2, Ask(160, 100, NOW + RETRY))


def test_hpa_waits_anew_while_pods_grow() -> None:
    """Half a size is there after three minutes, and more is on its way."""
    outcome = passed(hpa(Ask(160, 100, NOW)), pods(130), 80, now=NOW + PATIENCE)
    assert (outcome.desired, asked(outcome)) == (2, Ask(160, 130, NOW + PATIENCE))


def test_hpa_that_waited_in_vain_does_not_wait_for_the_next_rise() -> None:
    waited = passed(hpa(Ask(160, 100, NOW)), pods(100, 4), 50, now=NOW + PATIENCE + 15)
    ask = asked(waited)
    assert (waited.desired, ask) == (4, Ask(100, 100, NOW))
    assert ask is not None
    assert passed(hpa(ask), pods(100, 4), 80, now=NOW + PATIENCE + 600).desired == 7
    grew = passed(hpa(ask), pods(120, 4), 100, now=NOW + PATIENCE + 600)
    assert (grew.desired, asked(grew)) == (4, Ask(200, 120, NOW + PATIENCE + 600))


def test_hpa_that_no_longer_needs_it_leaves_pods_the_size_that_they_get() -> None:
    """Those that have it are not shrunk to the mean of all."""
    outcome = passed(hpa(Ask(160, 100, NOW)), pods(100), 50, now=NOW + 30)
    assert (outcome.desired, asked(outcome)) == (2, None)
    running = [*pods(160, 1), *pods(100)[1:]]
    outcome = passed(hpa(Ask(160, 100, NOW)), running, 65, now=NOW + 60)
    assert (outcome.desired, asked(outcome)) == (2, Ask(160))


def test_hpa_gives_replicas_back_before_size() -> None:
    """Three pods at 400m need 300m together: first one pod stays, later it shrinks."""
    long = Memory((Recommendation(NOW - WINDOW - 1, 3),))
    first = passed(hpa(Ask(400)), pods(400, 3), 50, memory=long)
    assert (first.desired, asked(first)) == (1, None)
    autoscaler, memory, now = hpa(Ask(400)), Memory(), NOW
    for _ in range(3):
        outcome = passed(autoscaler, pods(400, 1), 150, now=now, memory=memory)
        assert (outcome.desired, asked(outcome)) == (1, None)
        memory, now = outcome.memory, now + WINDOW / 3
    outcome = passed(autoscaler, pods(400, 1), 150, now=now + 1, memory=memory)
    assert asked(outcome) == Ask(300)
    assert (
        said(outcome)[1]
        == "cpu: replicas are as few as they may be; VerticalPodAutoscaler web is to shrink pods from 400m to 300m"
    )


def test_hpa_shrinks_pods_to_the_most_that_the_window_needed() -> None:
    outcome = passed(hpa(Ask(400)), pods(400, 1), 190, now=NOW - 1000)
    for number, usage in enumerate((100, 150, 60, 100)):
        outcome = passed(hpa(Ask(400)), pods(400, 1), usage, now=NOW + 90 * number, memory=outcome.memory)
    assert asked(outcome) == Ask(300)
    assert len(outcome.memory.needs) == 2


def test_hpa_shrinks_pods_only_when_no_replica_can_go() -> None:
    """None can where another metric asks for all of them."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    long = Need("cpu", NOW - WINDOW - 1, 0)
    view = View(
        autoscaler=hpa(Ask(400), metrics=[cpu, {"type": "External", "external": queue}]),
        replicas=3,
        reported=3,
        selector="app=web",
        pods=pods(400, 3),
        vpas=[vpa()],
        memory=Memory((Recommendation(NOW - WINDOW - 1, 3),), needs=(long,)),
        settings=Settings(upstream_compatible=False),
    )
    samples = {f"web-{i}": Sample(50, NOW, 15) for i in range(3)}
    kept = finish(propose(view, [samples, 30_000], NOW), NOW)
    assert (kept.desired, asked(kept)) == (3, Ask(100))
    gone = finish(propose(view, [samples, 15_000], NOW), NOW)
    assert (gone.desired, asked(gone)) == (2, None)


def test_hpa_leaves_what_the_vpa_does_not_size_out_of_the_size() -> None:
    """A pod of 100m and 60m uses 120m: 240m at 50 %, of which the sidecar keeps its 60m."""
    outcome = passed(hpa(), pods(100, side=60), 120)
    assert (outcome.desired, asked(outcome)) == (2, Ask(180, 100, NOW))


@pytest.mark.parametrize(
    "vpas",
    [
        (),
        (vpa(mode="Off"),),
        (vpa(mode="Initial"),),
        (vpa(controlledResources=["memory"]),),
        (vpa(mode="InPlace", controlledResources=[]),),
    ],
)
def test_hpa_does_not_wait_where_nobody_resizes_in_place(vpas: tuple[VerticalPodAutoscaler, ...]) -> None:
    outcome = passed(hpa(), pods(100), 80, vpas=vpas)
    assert (outcome.desired, asked(outcome)) == (4, None)
    assert said(outcome)[1] == "cpu: no VerticalPodAutoscaler resizes its containers in place, so replicas are added"


def test_hpa_by_upstreams_rules_knows_no_annotation() -> None:
    outcome = passed(hpa(), pods(100), 80, settings=Settings())
    assert (outcome.desired, outcome.annotations, said(outcome)) == (4, {}, ("", ""))
    assert said(passed(hpa(mode="keep-point"), pods(100), 50)) == ("", "")


def test_hpa_with_unready_pods_counts_them_and_shrinks_nothing() -> None:
    running = pods(100, 2)
    running[1] = msgspec.structs.replace(running[1], status=msgspec.structs.replace(running[1].status, phase="Pending"))
    outcome = passed(hpa(), running, 160)
    assert asked(outcome) == Ask(160, 100, NOW)


@pytest.mark.parametrize("text", ["x", "[]", '{"cpu":{"size":0}}', '{"cpu":{}}', '{"cpu":{"size":"1"}}', " " * 5000])
def test_hpa_does_not_believe_a_wrong_size(text: str) -> None:
    autoscaler = hpa()
    notes = {SCALE: "vertical-first", ASKED: text}
    metadata = msgspec.structs.replace(autoscaler.metadata, annotations=notes)
    assert asks(msgspec.structs.replace(autoscaler, metadata=metadata)) == {}


# ---------------------------------------------------------------- the VPA


def recommended(**targets: str) -> VerticalPodAutoscalerStatus:
    every = [
        {"containerName": name, "target": {"cpu": target, "memory": "1Gi"}, "uncappedTarget": {"cpu": target}}
        for name, target in targets.items()
    ]
    return convert({"recommendation": {"containerRecommendations": every}}, VerticalPodAutoscalerStatus)


def beside(status: VerticalPodAutoscalerStatus, *autoscalers: HorizontalPodAutoscaler) -> VerticalPodAutoscalerStatus:
    return beside_autoscalers(status, vpa(), around((), autoscalers), {}, STAMP)


def test_vpa_recommends_the_size_that_is_asked_for() -> None:
    found = beside(recommended(app="115m"), hpa(Ask(160)))
    assert found.recommendation is not None
    (one,) = (to_dict(container) for container in found.recommendation.container_recommendations)
    assert one["target"] == {"cpu": "160m", "memory": "1Gi"}
    assert one["lowerBound"] == one["upperBound"] == {"cpu": "160m"}
    assert one["uncappedTarget"] == {"cpu": "115m"}
    (condition,) = found.conditions
    assert condition.type == CONDITION
    assert condition.message.startswith("cpu of a pod is 160m, which HorizontalPodAutoscaler web asks for")


def test_vpa_gives_the_size_to_containers_as_they_use_it() -> None:
    """What one may not have goes to the others."""
    found = beside(recommended(app="300m", extra="100m"), hpa(Ask(800)))
    assert found.recommendation is not None
    targets = [str(one.target["cpu"]) for one in found.recommendation.container_recommendations]
    assert targets == ["400m", "400m"]


@pytest.mark.parametrize(
    "autoscalers",
    [(hpa(Ask(160), ours=False),), (hpa(),), (hpa(Ask(160)), hpa(mode="")), (hpa(Ask(160), mode="keep-point"),)],
)
def test_vpa_recommends_nothing_where_not_every_hpa_asks(autoscalers: tuple[HorizontalPodAutoscaler, ...]) -> None:
    """Upstream's controller writes no generation: beside it the resource is left alone."""
    found = beside(recommended(app="115m"), *autoscalers)
    assert found.recommendation is not None
    assert "cpu" not in found.recommendation.container_recommendations[0].target
    assert [condition.type for condition in found.conditions] == [HELD]


@pytest.mark.parametrize(
    ("total", "parts"), [(1, {"a": 1, "b": 100}), (300, {"a": 200, "b": 100}), (10**9, {"a": 1000, "b": 500})]
)
def test_size_is_split_within_policies(total: int, parts: dict[str, int]) -> None:
    policies = [
        {"containerName": "a", "maxAllowed": {"cpu": "1"}},
        {"containerName": "b", "minAllowed": {"cpu": "100m"}, "maxAllowed": {"cpu": "500m"}},
    ]
    spec = {"targetRef": TARGET, "resourcePolicy": {"containerPolicies": policies}}
    policy = convert({"spec": spec}, VerticalPodAutoscaler).spec.resource_policy
    assert split(total, {"a": 2, "b": 1}, "cpu", policy) == parts
    assert split(total, {}, "cpu", policy) == {}
