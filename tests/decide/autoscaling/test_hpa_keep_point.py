"""`podfit.dev/scale: keep-point`: an HPA adds replicas at the same usage, whatever a VPA requests."""

from typing import Any

import msgspec
import pytest

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.decide.autoscaling.horizontal.keep_point import ANCHOR, SCALE, anchored, anchors, request_bounds
from podfit.decide.autoscaling.horizontal.model import Anchor, Sample, Settings, View
from podfit.decide.autoscaling.horizontal.passing import finish, propose
from podfit.decide.autoscaling.nodes_and_autoscalers import MOVES, POINT, kept_points, within_points
from podfit.decide.autoscaling.targets import NamedTarget

SETTINGS = Settings(upstream_compatible=False)
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def hpa(target: int = 80, *, ours: bool = True, **annotations: str) -> HorizontalPodAutoscaler:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    metric["resource"]["target"]["averageUtilization"] = target  # type: ignore[index]
    spec = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 50, "metrics": [metric]}
    notes = {SCALE: "keep-point", **{name.replace("anchor", ANCHOR): text for name, text in annotations.items()}}
    status: dict[str, Any] = {"observedGeneration": 1} if ours else {}
    metadata = {"name": "web", "namespace": "shop", "annotations": notes, "generation": 1}
    return convert({"metadata": metadata, "spec": spec, "status": status}, HorizontalPodAutoscaler)


def pods(request: int, number: int = 4) -> list[Pod]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00Z"}
    status = {"phase": "Running", "startTime": "2000-01-01T00:00:00Z", "conditions": [ready]}
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": f"{request}m"}}}
    return [
        convert({"metadata": {"name": f"web-{index}"}, "spec": {"containers": [container]}, "status": status}, Pod)
        for index in range(number)
    ]


def wanted(autoscaler: HorizontalPodAutoscaler, request: int, usage: int) -> tuple[int, dict[str, str]]:
    """Replicas that come of four pods that use so much each, and annotations that are written."""
    view = View(
        autoscaler=autoscaler, replicas=4, reported=4, selector="app=web", pods=pods(request), settings=SETTINGS
    )
    samples = {f"web-{index}": Sample(usage, 2e9, 15) for index in range(4)}
    outcome = finish(propose(view, [samples], 2e9), 2e9)
    assert outcome.desired is not None
    return outcome.desired, dict(outcome.annotations)


def anchor_of(target: int = 80, request: int = 100) -> str:
    return msgspec.json.encode({"cpu": Anchor(target, request)}).decode()


def test_hpa_writes_its_anchor_once() -> None:
    _, notes = wanted(hpa(), 100, 80)
    assert notes[ANCHOR] == anchor_of()
    _, notes = wanted(hpa(anchor=notes[ANCHOR]), 160, 80)
    assert ANCHOR not in notes
    _, notes = wanted(hpa(60, anchor=anchor_of()), 160, 80)
    assert notes[ANCHOR] == anchor_of(60, 160)


@pytest.mark.parametrize("request_", [85, 100, 130, 160, 200])
def test_hpa_adds_replicas_where_it_did(request_: int) -> None:
    """80 % of 100m is 80m: at 160m each, twice the pods, whatever is requested now."""
    autoscaler = hpa(anchor=anchor_of())
    assert wanted(autoscaler, request_, 80)[0] == 4
    assert wanted(autoscaler, request_, 160)[0] in (8, 9)
    assert anchored(autoscaler, pods(request_), SETTINGS) == ((Anchor(80, 100),), "")
    assert to_dict(autoscaler.spec) == to_dict(hpa().spec)


def test_hpa_adds_replicas_before_pods_use_more_than_they_request() -> None:
    """At 84m the target is 95 %, and the tolerance would reach to 104 %."""
    assert wanted(hpa(anchor=anchor_of()), 84, 84)[0] == 4
    assert wanted(hpa(anchor=anchor_of()), 84, 86)[0] == 5


@pytest.mark.parametrize(
    ("target", "request_", "size", "usage"), [(60, 200, 132, 133), (70, 500, 386, 388), (60, 500, 330, 332)]
)
def test_hpa_keeps_its_point_to_the_last_thousandth(target: int, request_: int, size: int, usage: int) -> None:
    """Whole percents would leave replicas that use up to 1 % more than they request: days 229, 565 and 639 of the
    thousand on which an HPA and a VPA come to rest."""
    autoscaler = hpa(target, anchor=anchor_of(target, request_))
    assert wanted(autoscaler, size, target * request_ * 110 // 10000)[0] == 4
    assert wanted(autoscaler, size, usage)[0] == 5


def test_hpa_target_stays_between_40_and_95_percent() -> None:
    assert [Anchor(80, 100).at(request) for request in (50, 84, 100, 200, 800)] == [95, 95, 80, 40, 40]


def test_vpa_keeps_the_request_within_the_bounds_of_the_point() -> None:
    assert request_bounds([hpa(anchor=anchor_of())]) == {"cpu": (88, 200)}
    assert request_bounds([hpa(anchor=anchor_of()), hpa(anchor=anchor_of(80, 120))]) == {"cpu": (106, 200)}
    assert request_bounds([hpa(95, anchor=anchor_of(95))]) == {"cpu": (105, 237)}
    container = {"containerName": "app", "target": {"cpu": "300m"}, "upperBound": {"cpu": "1"}}
    beside = {"containerName": "side", "target": {"cpu": "100m"}, "lowerBound": {"cpu": "10m"}}
    status = convert({"recommendation": {"containerRecommendations": [container, beside]}}, VerticalPodAutoscalerStatus)
    points = kept_points([hpa(anchor=anchor_of())])[NamedTarget("shop", "Deployment", "web")]
    found = within_points(status, status.recommendation, points, EARLY)
    assert found.recommendation is not None
    told = [to_dict(one) for one in found.recommendation.container_recommendations]
    assert [(one["target"]["cpu"], one.get("lowerBound"), one.get("upperBound")) for one in told] == [
        ("150m", None, {"cpu": "150m"}),
        ("50m", {"cpu": "22m"}, None),
    ]
    (condition,) = (said for said in found.conditions if said.type == POINT)
    assert condition.message.startswith("cpu of a pod stays at 200m")


POINTS = {"cpu": (88, 200)}
EARLY, LATE = "2000-01-01T00:00:00Z", "2000-01-01T01:00:00Z"


def recommended(target: str, before: VerticalPodAutoscalerStatus | None = None) -> VerticalPodAutoscalerStatus:
    one = {"containerName": "app", "target": {"cpu": target}, "lowerBound": {"cpu": "10m"}}
    found = convert({"recommendation": {"containerRecommendations": [one]}}, VerticalPodAutoscalerStatus)
    return msgspec.structs.replace(found, conditions=before.conditions if before is not None else ())


def target_of(status: VerticalPodAutoscalerStatus) -> str | None:
    found = status.recommendation
    return str(found.container_recommendations[0].target["cpu"]) if found is not None else None


@pytest.mark.parametrize(("new", "said"), [("110m", "100m"), ("125m", "100m"), ("126m", "126m"), ("74m", "88m")])
def test_vpa_does_not_follow_each_step_of_its_estimate(new: str, said: str) -> None:
    """The HPA's target would follow it, and the usage of its pods the replicas: it has to be far, and to last."""
    before = recommended("100m").recommendation
    first = within_points(recommended(new), before, POINTS, EARLY)
    assert target_of(first) == "100m"
    assert [condition.type for condition in first.conditions] == ([MOVES] if said != "100m" else [])
    last = within_points(recommended(new, first), first.recommendation, POINTS, LATE)
    assert target_of(last) == said
    assert not any(condition.type == MOVES for condition in last.conditions)


def test_vpa_does_not_follow_what_passes_within_the_hour() -> None:
    before = recommended("100m").recommendation
    away = within_points(recommended("190m"), before, POINTS, EARLY)
    back = within_points(recommended("100m", away), away.recommendation, POINTS, "2000-01-01T00:59:00Z")
    assert back.conditions == ()
    again = within_points(recommended("190m", back), back.recommendation, POINTS, LATE)
    assert target_of(again) == "100m"


def test_vpa_recommends_nothing_before_its_first_estimate_has_lasted() -> None:
    first = within_points(recommended("190m"), None, POINTS, EARLY)
    assert first.recommendation is None
    assert target_of(within_points(recommended("190m", first), None, POINTS, LATE)) == "190m"


def test_vpa_leaves_the_resource_alone_beside_upstreams_hpa() -> None:
    """Who writes no generation is not podfit's controller."""
    assert request_bounds([hpa(ours=False, anchor=anchor_of())]) == {}
    assert request_bounds([hpa()]) == {}
    plain = convert({**to_dict(hpa(anchor=anchor_of())), "metadata": {"name": "other"}}, HorizontalPodAutoscaler)
    assert request_bounds([hpa(anchor=anchor_of()), plain]) == {}


LONG = f'{{"cpu":{{"target":50,"request":1{"0" * 400}}}}}'


@pytest.mark.parametrize("text", ["x", LONG, "[]", '{"cpu":{"target":0,"request":1}}', '{"cpu":{}}', " " * 5000])
def test_hpa_does_not_believe_a_wrong_anchor(text: str) -> None:
    assert anchors(hpa(anchor=text)) == {}
