"""LimitRange: what it adds, what it refuses, and in which words."""

import pytest

from podfit.api.core.v1.limits.types import LimitRange, LimitRangeItem, LimitRangeSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.limits.limit_range import ANNOTATION, add_defaults, check_limits
from support.pods import Amounts, amounts, container, needs, pod


def limit_range(sort: str = "Container", **bounds: Amounts) -> LimitRange:
    item = LimitRangeItem(type=sort, **{name: amounts(given) for name, given in bounds.items()})
    return LimitRange(spec=LimitRangeSpec(limits=(item,)))


@pytest.mark.row("R-063")
def test_defaults_fill_only_what_is_missing() -> None:
    """R-063."""
    limits = limit_range(default={"cpu": "1"}, default_request={"cpu": "500m", "memory": "64Mi"})
    given = pod(container("a", {"cpu": "100m"}), init=(container("i", {"cpu": "1", "memory": "1"}, {"cpu": "1"}),))
    filled = add_defaults(given, [limits])
    assert filled.spec.containers[0].resources == needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "1"})
    assert filled.spec.init_containers == given.spec.init_containers
    note = "LimitRanger plugin set: memory request for container a; cpu limit for container a"
    assert filled.metadata.annotations == {ANNOTATION: note}
    assert add_defaults(filled, [limits]) is filled


TWO = (
    "[minimum cpu usage per Container is 1, but request is 1m, "
    "maximum memory usage per Container is 1Gi, but limit is 2Gi]"
)


@pytest.mark.row("R-060", "R-061", "R-062")
@pytest.mark.parametrize(
    ("limits", "given", "text"),
    [
        (
            limit_range(min={"cpu": "1"}),
            pod(container("a")),
            "minimum cpu usage per Container is 1.  No request is specified",
        ),
        (
            limit_range(max={"cpu": "1"}),
            pod(container("a", {"cpu": "2"})),
            "maximum cpu usage per Container is 1.  No limit is specified",
        ),
        (
            limit_range(min={"cpu": "1"}, max={"memory": "1Gi"}),
            pod(container("a", {"cpu": "1m"}, {"memory": "2Gi"})),
            TWO,
        ),
        (
            limit_range("Pod", max={"cpu": "1"}),
            pod(container("a", limits={"cpu": "600m"}), container("b", limits={"cpu": "600m"})),
            "maximum cpu usage per Pod is 1, but limit is 1200m",
        ),
        (
            limit_range("Pod", max={"cpu": "1"}),
            pod(container("a", limits={"cpu": "600m"}), resources=needs(limits={"cpu": "2"})),
            "maximum cpu usage per Pod is 1, but limit is 2",
        ),
        (
            limit_range(max_limit_request_ratio={"memory": "2"}),
            pod(container("a", {"memory": "1Gi"}, {"memory": "5Gi"})),
            "memory max limit to request ratio per Container is 2, but provided ratio is 5.000000",
        ),
        (
            limit_range(max_limit_request_ratio={"cpu": "2"}),
            pod(container("a")),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            limit_range(max_limit_request_ratio={"cpu": "2"}),
            pod(container("a", {"cpu": "1"})),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
    ],
)
def test_refusals(limits: LimitRange, given: Pod, text: str) -> None:
    """R-060 to R-062."""
    verdict = check_limits(given, [limit_range(), limits])
    assert verdict is not None
    assert verdict.text == text


def test_bounds_are_inclusive_and_overhead_is_the_namespaces_gift() -> None:
    limits = limit_range("Pod", min={"cpu": "1"}, max={"cpu": "1"}, max_limit_request_ratio={"cpu": "1"})
    given = pod(container("a", {"cpu": "1"}, {"cpu": "1"}), overhead=amounts({"cpu": "5"}))
    assert check_limits(given, [limits]) is None
