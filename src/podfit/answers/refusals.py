"""What the API server would say of a resize: the same rules in the same order as behind `pods/resize`.

    defaults ─▶ LimitRange's defaults ─▶ what a resize carries ─▶ 422 ─▶ 403: LimitRange, features, capacity, quota
"""

from collections.abc import Sequence

import msgspec

from podfit.answers.ages import Age
from podfit.api.core.limits import LimitRange, ResourceQuota
from podfit.api.core.nodes import Node
from podfit.api.core.pod_defaults import default_pod
from podfit.api.core.pods import Pod
from podfit.core.errors import ApiError
from podfit.core.fields import FieldError, forbidden, refusal
from podfit.core.quantity import ZERO
from podfit.decide.limits import add_defaults, check_limits
from podfit.decide.node_admission import check_capacity, check_features
from podfit.decide.quota import charge
from podfit.decide.refused import Refused
from podfit.decide.resize import lowers
from podfit.decide.resize_rules import prepare_resize, validate_resize


class Accepted(msgspec.Struct, frozen=True):
    """What would be stored, and the quotas with what they would then have used."""

    pod: Pod
    quotas: tuple[ResourceQuota, ...] = ()


def judge(
    wanted: Pod, stored: Pod, *, age: Age, node: Node | None, limit_ranges: Sequence[LimitRange],
    quotas: Sequence[ResourceQuota],
) -> Accepted | ApiError:
    """`wanted` is the stored pod with other resources. The error is the one the server would send."""
    name, gates = stored.metadata.name, age.gates
    stored = default_pod(stored, gates)  # an older server has stored fewer defaults
    full = add_defaults(default_pod(wanted, gates), limit_ranges)
    new = prepare_resize(full, stored, gates)
    if errors := [*validate_resize(new, stored, gates), *_of_its_age(new, stored, age)]:
        return refusal("Pod", name, errors)
    checks: tuple[Refused | None, ...] = (
        check_limits(new, limit_ranges, gates),
        check_features(new, stored, node, gates) if age.checks_capacity else None,
        check_capacity(new, stored, node, gates) if age.checks_capacity else None,
    )
    for refused in checks:
        if refused is not None:
            return refused.error(name)
    charged = charge(new, stored, quotas, gates)
    if isinstance(charged, Refused):
        return charged.error(name)
    return Accepted(new, charged.quotas)


def _of_its_age(new: Pod, old: Pod, age: Age) -> list[FieldError]:
    if age.lowers_memory or new.spec == old.spec:
        return []
    errors = []
    for index, (one, other) in enumerate(zip(new.spec.containers, old.spec.containers, strict=True)):
        limit, before = (each.resources.limits.get("memory", ZERO) for each in (one, other))
        policies = {each.resource_name: each.restart_policy for each in one.resize_policy}
        if before and lowers(limit, before) and policies.get("memory") != "RestartContainer":
            text = "memory limits cannot be decreased unless resizePolicy is RestartContainer"
            errors.append(forbidden(f"spec.containers[{index}].resources.limits[memory]", text))
    return errors


def charged_with(quotas: Sequence[ResourceQuota], used: Sequence[ResourceQuota]) -> tuple[ResourceQuota, ...]:
    """The quotas as they stand after a resize was accepted, for the next one to be judged by."""
    newer = {quota.metadata.name: quota for quota in used}
    return tuple(newer.get(quota.metadata.name, quota) for quota in quotas)

