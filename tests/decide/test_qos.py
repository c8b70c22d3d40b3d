"""QoS classes, against tables and the rule's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO
from podfit.decide.pod.qos import qos_class
from support.pods import Amounts, container, needs, pod

BOTH = {"cpu": "1", "memory": "1Gi"}
SAME = {"cpu": "1000m", "memory": "1024Mi"}


@pytest.mark.parametrize(
    ("given_pod", "expected"),
    [
        (pod(container("a")), "BestEffort"),
        (pod(container("a", {"cpu": "0"}, {"memory": "0"})), "BestEffort"),
        (pod(container("a", {"example.com/gpu": "1"})), "BestEffort"),
        (pod(container("a", BOTH, SAME)), "Guaranteed"),
        (pod(container("a", BOTH, BOTH), container("b")), "Burstable"),
        (pod(container("a", {"cpu": "1"}, {"cpu": "1"})), "Burstable"),
        (pod(container("a", BOTH, BOTH), init=(container("i", BOTH, BOTH),)), "Guaranteed"),
        (pod(container("a", BOTH, BOTH), init=(container("i", {"cpu": "1"}),)), "Burstable"),
        (pod(container("a"), resources=needs(BOTH, BOTH)), "Guaranteed"),
        (pod(container("a", BOTH, BOTH), resources=needs({"cpu": "1"}, {"cpu": "1"})), "Burstable"),
        (pod(container("a", BOTH, BOTH), resources=needs()), "BestEffort"),
    ],
)
def test_classes(given_pod: Pod, expected: str) -> None:
    assert qos_class(given_pod) == expected


def test_without_the_gate_pod_level_resources_do_not_matter() -> None:
    off = FeatureGates({"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False})
    assert qos_class(pod(container("a"), resources=needs(BOTH, BOTH)), off) == "BestEffort"


texts = st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage"]), st.sampled_from("012"), max_size=3)
specs = st.lists(st.tuples(texts, texts), min_size=1, max_size=3)


@given(specs, specs)
def test_guaranteed_means_that_every_container_has_both_limits_and_sums_agree(
    regular: list[tuple[Amounts, Amounts]], initial: list[tuple[Amounts, Amounts]]
) -> None:
    built = [container(f"c{index}", *resources) for index, resources in enumerate((*regular, *initial))]
    everyone = [container.resources for container in built]
    given_pod = pod(*built[: len(regular)], init=tuple(built[len(regular) :]))

    def total(name: str, side: str) -> int:
        return sum(getattr(requirements, side).get(name, ZERO).value() for requirements in everyone)

    asked = any(total(name, side) for name in ("cpu", "memory") for side in ("requests", "limits"))
    bounded = all(requirements.limits.get(name, ZERO) > ZERO for requirements in everyone for name in ("cpu", "memory"))
    agree = all(total(name, "requests") == total(name, "limits") for name in ("cpu", "memory"))
    expected = "BestEffort" if not asked else "Guaranteed" if bounded and agree else "Burstable"
    assert qos_class(given_pod) == expected
