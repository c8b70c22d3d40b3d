"""Patches of pods that are made, as recorded."""

import re
from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.patches import UPDATES, Operation, admission_patches
from support.golden import Case
from support.vpa_golden import replay


def patches(case: Case) -> tuple[Operation, ...]:
    most = case.get("max-allowed-cpu-boost")
    return admission_patches(
        convert(case["pod"], Pod),
        convert(case["vpa"], VerticalPodAutoscaler),
        [convert(limit_range, LimitRange) for limit_range in case.get("limit_ranges") or ()],
        Gates.of(case.get("feature_gates") or {}),
        Quantity.parse(most) if most else None,
    )


def told(operations: list[Operation] | tuple[Operation, ...]) -> dict[str, Any]:
    """By path; amounts as such, since upstream writes them as its VPA does and podfit in canonical form.

    The notes of a container, which upstream says in any order, are sorted.
    """
    found = {operation["path"]: read(operation["value"]) for operation in operations}
    assert len(found) == len(operations)
    path = f"/metadata/annotations/{UPDATES}"
    if path in found:
        head, *rest = re.split(r"container \d+: ", found[path])
        found[path] = head, [sorted(part.removesuffix("; ").split(", ")) for part in rest]
    return found


def read(value: Any) -> Any:
    try:
        return Quantity.parse(value) if isinstance(value, str) else value
    except ValueError:
        return value


def with_limits_that_allow_the_request(recorded: dict[str, Any]) -> dict[str, Any]:
    """Upstream boosts requests above limits that come from a LimitRange's default; the API refuses such pods."""
    for path, limit in list(recorded.items()):
        request = recorded.get(path.replace("/limits/", "/requests/"))
        if path.endswith("/limits/cpu") and request is not None:
            recorded[path] = max(limit, request)
    return recorded


@pytest.mark.row("V-060", "V-064", "V-065", "V-107", "V-110")
@replay("admission_patches", lambda case: "upstream_panic" not in case)
def test_vpa_pods_are_patched_as_recorded(case: Case) -> None:
    found = patches(case)
    paths = [operation["path"] for operation in found]
    for path in paths:
        parent = path.rpartition("/")[0]
        assert parent not in paths or paths.index(parent) < paths.index(path)
    assert told(found) == with_limits_that_allow_the_request(told(case["patches"] or ()))


@replay("admission_patches", lambda case: "upstream_panic" in case)
def test_vpa_pods_are_patched_where_upstream_ends(case: Case) -> None:
    assert patches(case)
