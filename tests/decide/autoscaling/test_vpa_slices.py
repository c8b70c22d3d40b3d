"""Recommendations by slice of a VPA's pods, and for pods as a whole: what is asked for, kept, and told to one pod."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    GenericStartupBoost,
    StartupBoost,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
)
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.capping import NO_AMOUNTS
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.conditions import AGGREGATED
from podfit.decide.autoscaling.gates import NO_GATES, Gates
from podfit.decide.autoscaling.patches import admission_patches, recommended_resources
from podfit.decide.autoscaling.policies import LONGEST_TEXT
from podfit.decide.autoscaling.recommendation import Amounts, Numbers, recommendation
from podfit.decide.autoscaling.scope import AGGREGATION, POD_POLICY, PodFacts, Scope, scope_of, slice_of
from podfit.decide.autoscaling.slices import (
    LONGEST,
    MOST_SLICES,
    RECOMMENDATIONS,
    Stored,
    recommended_by_slice,
    slice_told,
    stored,
    told_to,
    with_slices,
)
from podfit.decide.autoscaling.status import Estimated
from podfit.decide.autoscaling.tracked import VpaKey
from podfit.decide.autoscaling.validation import validate
from podfit.decide.autoscaling.wake import asks

NOW = datetime(2026, 11, 27, tzinfo=UTC)
AT = NOW.timestamp()
MI = 1 << 20
KEY = VpaKey("shop", "web")


def vpa(annotations: dict[str, str], *policies: Any, name: str = "web", **status: Any) -> VerticalPodAutoscaler:
    """Its status recommends 100m and 100Mi for the container app of all pods."""
    amounts = {"cpu": "100m", "memory": "100Mi"}
    one = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    document = {
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
            **({"resourcePolicy": {"containerPolicies": list(policies)}} if policies else {}),
        },
        "status": {"recommendation": {"containerRecommendations": [one]}, **status},
    }
    return convert(document, VerticalPodAutoscaler)


def pod(name: str = "web-0", *, labels: dict[str, str] | None = None, node: str = "", **spec: Any) -> Pod:
    meta = {"name": name, "namespace": "shop", "labels": labels or {}}
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "50m", "memory": "50Mi"}}}
    return convert({"metadata": meta, "spec": {"containers": [container], "nodeName": node, **spec}}, Pod)


def estimated(milli: int, container: str = "app", memory: int = 100 * MI, bound: int = 0) -> Estimated:
    amounts = Amounts(milli, memory)
    numbers = Numbers(container, amounts, amounts, Amounts(milli + bound, memory))
    return Estimated(recommendation([numbers], None, ClusterState().flags.render, {}))


def kept(asked: VerticalPodAutoscaler, found: dict[str, Estimated], left: int = 0) -> VerticalPodAutoscaler:
    """The VPA after a recommender has written these slices."""
    wanted = recommended_by_slice(asked, found, left, NO_AMOUNTS, frozenset())
    return replace(asked, status=with_slices(asked.status, asked, wanted, NOW))


def cpu(asked: VerticalPodAutoscaler, of: Pod, container: str = "app") -> str:
    return str(recommended_resources(of, asked, ())[container].requests["cpu"])


# ---------------------------------------------------------------- what is asked for


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("workload", Scope()),
        ("pod", Scope("pod")),
        ("node", Scope("node")),
        ("label=tier", Scope("label", "tier")),
        ("label=a.example/tier", Scope("label", "a.example/tier")),
        ("label", None),
        ("label=", None),
        ("label=no key", None),
        ("pod=x", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_vpa_aggregation_is_read_or_refused(text: str, scope: Scope | None) -> None:
    made = vpa({AGGREGATION: text})
    assert scope_of(made.metadata.annotations) == scope
    said = [str(error) for error in validate(made, None, NO_GATES)]
    assert any("must be workload, pod, node or label=KEY" in text for text in said) == (scope is None)
    assert told_to(made, pod()).status.recommendation is not None, "what cannot be read asks for nothing"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mode": "Auto"}', ""),
        ("{}", ""),
        ('{"mode": "Off", "maxAllowed": {"cpu": "1"}}', ""),
        ('{"mode": "On"}', 'mode "On" has to be Auto or Off'),
        ('{"mod": "Auto"}', "unknown field `mod`"),
        ("[]", "cannot be read"),
        ("[" * 5000, f"at most {LONGEST_TEXT} characters"),
        ("[" * 4000, "cannot be read"),
        ('{"mode": "Auto", "minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}}', "lower than min"),
        ('{"mode": "Auto", "controlledResources": ["gpu"]}', "Unsupported value"),
        ('{"mode": "Auto", "oomBumpUpRatio": "2"}', "PerVPAConfig"),
    ],
)
def test_vpa_pod_policy_is_read_or_refused(text: str, said: str) -> None:
    found = "; ".join(str(error) for error in validate(vpa({POD_POLICY: text}), None, NO_GATES))
    assert said in found
    assert bool(said) == bool(found)


def test_vpa_pod_policy_goes_neither_with_container_policies_nor_with_a_boost() -> None:
    """AEP 9988: a VPA sizes the pod or its containers."""
    both = vpa({POD_POLICY: '{"mode": "Auto"}'}, {"containerName": "app"})
    assert any("there are containerPolicies" in str(error) for error in validate(both, None, NO_GATES))
    boost = StartupBoost(cpu=GenericStartupBoost(type="Factor", factor=2))
    alone = vpa({POD_POLICY: '{"mode": "Auto"}'})
    boosted = replace(alone, spec=replace(alone.spec, startup_boost=boost))
    gates = Gates(cpu_startup_boost=True)
    assert any("no startupBoost of pods as a whole" in str(error) for error in validate(boosted, None, gates))
    assert not validate(alone, None, gates)


@pytest.mark.parametrize(
    ("scope", "of", "named"),
    [
        (Scope("pod"), pod("web-3"), "web-3"),
        (Scope("pod"), pod(""), ""),
        (Scope("node"), pod(node="n1"), "n1"),
        (Scope("node"), pod(), ""),
        (Scope("label", "tier"), pod(labels={"tier": "gold"}), "gold"),
        (Scope("label", "tier"), pod(), ""),
        (Scope(), pod(), ""),
    ],
)
def test_vpa_slice_of_a_pod(scope: Scope, of: Pod, named: str) -> None:
    assert slice_of(scope, PodFacts.of(of)) == named


def test_vpa_pod_of_a_daemon_set_belongs_to_its_node_before_it_is_bound() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert PodFacts.of(pod(affinity={"nodeAffinity": required})).node == "n7"


# ---------------------------------------------------------------- what is kept, and told


def test_vpa_pod_is_told_its_slice_and_what_holds_for_all_where_that_has_nothing() -> None:
    made = kept(vpa({AGGREGATION: "pod"}), {"web-0": estimated(700), "web-1": estimated(30)})
    assert cpu(made, pod("web-0")) == "700m"
    assert cpu(made, pod("web-1")) == "30m"
    assert cpu(made, pod("web-2")) == "100m"
    assert slice_told(made, pod("web-0")) == "by slice web-0 (podfit.dev/aggregation: pod)"
    assert slice_told(made, pod("web-2")).startswith("as all pods, since slice web-2 has no sizes of its own yet")
    assert slice_told(vpa({}), pod("web-0")) == ""
    told = told_to(made, pod("web-0"))
    assert told_to(told, pod("web-1")) == told, "told once"


def test_vpa_resource_without_samples_of_a_slice_keeps_what_was_said() -> None:
    made = kept(vpa({AGGREGATION: "pod"}), {"web-0": estimated(700)})
    nothing = replace(estimated(0), unknown=frozenset({("app", "cpu"), ("app", "memory")}))
    assert cpu(kept(made, {"web-0": nothing}), pod("web-0")) == "700m"
    assert cpu(kept(vpa({AGGREGATION: "pod"}), {"web-0": nothing}), pod("web-0")) == "100m"


def test_vpa_what_was_kept_by_another_aggregation_counts_for_nothing() -> None:
    made = kept(vpa({AGGREGATION: "pod"}), {"web-0": estimated(700)})
    other = replace(made, metadata=replace(made.metadata, annotations={AGGREGATION: "node"}))
    assert stored(other) == Stored()
    assert cpu(other, pod("web-0", node="web-0")) == "100m"
    off = replace(made, metadata=replace(made.metadata, annotations={}))
    assert cpu(off, pod("web-0")) == "100m"
    assert not any(one.type == RECOMMENDATIONS for one in kept(off, {}).status.conditions)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"aggregation": "pod", "slices": {"web-0": {"app": {"cpu": ["1"]}}}}',
        '{"aggregation": "pod", "slices": {"web-0": {"app": {"cpu": ["x", "1", "1"]}}}}',
        '{"aggregation": "pod", "slices": {"web-0": {"app": {"cpu": ["9", "9", "9"]}}}}' + " " * LONGEST,
        "[" * 100_000,
    ],
)
def test_vpa_kept_text_that_cannot_be_read_counts_for_nothing(text: str) -> None:
    said = {"type": RECOMMENDATIONS, "status": "True", "message": text}
    assert cpu(vpa({AGGREGATION: "pod"}, conditions=[said]), pod("web-0")) == "100m"


def test_vpa_of_resources_that_an_hpa_sizes_no_slice_has_its_own() -> None:
    asked = vpa({AGGREGATION: "pod"})
    wanted = recommended_by_slice(asked, {"web-0": estimated(700)}, 0, NO_AMOUNTS, frozenset({"cpu"}))
    made = replace(asked, status=with_slices(asked.status, asked, wanted, NOW))
    assert cpu(made, pod("web-0")) == "100m"
    assert "memory" in stored(made).slices["web-0"].container_recommendations[0].target


def test_vpa_bounds_that_moved_little_are_not_written_anew() -> None:
    made = kept(vpa({AGGREGATION: "pod"}), {"web-0": estimated(700, bound=100)})
    assert kept(made, {"web-0": estimated(700, bound=130)}).status == made.status
    assert kept(made, {"web-0": estimated(700, bound=300)}).status != made.status
    assert kept(made, {"web-0": estimated(710, bound=100)}).status != made.status


def test_vpa_slice_that_moved_wakes_the_updater() -> None:
    made = kept(vpa({AGGREGATION: "pod"}), {"web-0": estimated(700)})
    assert not asks(made, kept(made, {"web-0": estimated(702)}))
    assert asks(made, kept(made, {"web-0": estimated(900)}))
    assert asks(made, kept(made, {"web-0": estimated(700), "web-1": estimated(10)}))


def test_vpa_past_the_bound_pods_have_what_holds_for_all() -> None:
    """Ten thousand slices are asked for; a text of a bounded size is kept, and the rest is counted."""
    names = [f"web-{number}" for number in range(MOST_SLICES)]
    found = {name: estimated(700, container="a" * 60) for name in names}
    wanted = Stored({name: one.recommendation for name, one in found.items()}, 10_000 - MOST_SLICES)
    asked = vpa({AGGREGATION: "pod"})
    made = replace(asked, status=with_slices(asked.status, asked, wanted, NOW))
    said = {one.type: one.message or "" for one in made.status.conditions}
    assert len(said[RECOMMENDATIONS]) <= LONGEST
    assert said[AGGREGATED].startswith(f"{len(stored(made).names)} of 10000 slices have sizes of their own")
    long = {name: Estimated(_wide(60)) for name in names}
    wide = kept(asked, long, 10_000 - MOST_SLICES)
    said = {one.type: one.message or "" for one in wide.status.conditions}
    assert LONGEST - 20_000 < len(said[RECOMMENDATIONS]) <= LONGEST
    assert 0 < len(stored(wide).slices) < 50
    assert f"{len(stored(wide).slices)} of 10000" in said[AGGREGATED]
    assert cpu(wide, pod("web-499")) == "100m"


def _wide(containers: int) -> Any:
    numbers = [Numbers(f"c{number}", *(Amounts(1234, 567 * MI + number),) * 3) for number in range(containers)]
    return recommendation(numbers, None, ClusterState().flags.render, {})


# ---------------------------------------------------------------- the pod as a whole


AS_A_WHOLE = {POD_POLICY: '{"mode": "Auto", "maxAllowed": {"cpu": "2"}, "minAllowed": {"memory": "64Mi"}}'}


def level(**sides: Any) -> Pod:
    return pod(resources=sides)


def changes(of: Pod, made: VerticalPodAutoscaler, *ranges: LimitRange) -> tuple[dict[str, str], dict[str, str]]:
    found = recommended_resources(of, made, ranges)[""]
    requests, limits = ({name: str(amount) for name, amount in side.items()} for side in (found.requests, found.limits))
    return requests, limits


@pytest.mark.parametrize(
    ("sides", "milli", "wanted"),
    [
        ({"requests": {"cpu": "1", "memory": "1Gi"}}, 700, ({"cpu": "700m", "memory": "100Mi"}, {})),
        (
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            700,
            ({"cpu": "700m", "memory": "100Mi"}, {"cpu": "1400m", "memory": "100Mi"}),
        ),
        ({"requests": {"cpu": "1"}}, 5000, ({"cpu": "2", "memory": "100Mi"}, {})),
        ({"requests": {"cpu": "1"}}, 10, ({"cpu": "50m", "memory": "100Mi"}, {})),
        ({}, 700, ({"cpu": "700m", "memory": "100Mi"}, {})),
    ],
    ids=["requests", "limits in proportion", "maxAllowed", "what containers request", "none of its own"],
)
def test_vpa_pod_as_a_whole(sides: Any, milli: int, wanted: Any) -> None:
    made = kept(vpa(AS_A_WHOLE), {"": estimated(milli, container="")})
    assert changes(level(**sides), made) == wanted
    assert recommended_resources(level(**sides), made, ()).keys() == {""}, "containers keep what they have"


def test_vpa_pod_as_a_whole_without_samples_is_left_alone() -> None:
    assert recommended_resources(level(), vpa(AS_A_WHOLE), ()) == {}
    assert told_to(vpa(AS_A_WHOLE), level()).status.recommendation is None


def test_vpa_pod_as_a_whole_is_within_the_limit_range_of_pods_and_not_of_containers() -> None:
    spec = {
        "limits": [
            {"type": "Pod", "max": {"cpu": "500m"}},
            {"type": "Container", "max": {"cpu": "1m"}, "default": {"cpu": "1"}},
        ]
    }
    ranges = convert({"metadata": {"name": "r", "namespace": "shop"}, "spec": spec}, LimitRange)
    made = kept(vpa(AS_A_WHOLE), {"": estimated(700, container="")})
    own = level(requests={"cpu": "100m"}, limits={"cpu": "200m"})
    assert changes(own, made, ranges) == ({"cpu": "250m", "memory": "100Mi"}, {"cpu": "500m"})


def test_vpa_limit_of_a_pod_as_a_whole_is_never_below_that_of_a_container() -> None:
    made = kept(vpa(AS_A_WHOLE), {"": estimated(700, container="")})
    own = level(requests={"cpu": "7"}, limits={"cpu": "7"})
    (container,) = own.spec.containers
    wide = replace(container, resources=replace(container.resources, limits={"cpu": Quantity.parse("3")}))
    own = replace(own, spec=replace(own.spec, containers=(wide,)))
    assert changes(own, made)[1] == {"cpu": "3"}


def test_vpa_new_pod_is_made_as_a_whole() -> None:
    made = kept(vpa(AS_A_WHOLE), {"": estimated(700, container="")})
    patches = admission_patches(pod(), made, (), Gates(cpu_startup_boost=True))
    paths = {operation["path"]: operation["value"] for operation in patches}
    assert paths["/spec/resources/requests/cpu"] == "700m"
    assert paths["/spec/resources"] == {}
    assert not any(path.startswith("/spec/containers") for path in paths)
    assert paths["/metadata/annotations/vpaUpdates"] == (
        "Pod resources updated by web: pod: cpu request, memory request"
    )


def test_vpa_slices_of_pods_as_a_whole() -> None:
    rules = {AGGREGATION: "pod", **AS_A_WHOLE}
    made = kept(vpa(rules), {"": estimated(700, container=""), "web-0": estimated(900, container="")})
    assert changes(pod("web-0"), made)[0]["cpu"] == "900m"
    assert changes(pod("web-1"), made)[0]["cpu"] == "700m"
    assert slice_told(made, pod("web-0")) == (
        "as a whole (podfit.dev/pod-policy), by slice web-0 (podfit.dev/aggregation: pod)"
    )


def test_vpa_status_of_a_recommender_that_is_upstreams_says_nothing_of_slices() -> None:
    asked = vpa({AGGREGATION: "pod"})
    assert with_slices(VerticalPodAutoscalerStatus(), asked, Stored(), NOW) == VerticalPodAutoscalerStatus()
