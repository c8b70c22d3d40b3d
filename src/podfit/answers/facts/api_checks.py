"""The checks of a resize that a server of a release makes, as far as they are known from outside."""

from msgspec.structs import replace

from podfit.answers.facts.ages import Age
from podfit.core.fields import FieldError, forbidden
from podfit.core.quantity import ZERO
from podfit.decide.resize.checks import NODE_CHECKS, RESIZE_CHECKS, VALIDATION, Check, ResizeToCheck
from podfit.decide.resize.restart_policy import restarting
from podfit.decide.resize.steps import lowers


def checks_of(age: Age, *, knows_node: bool = True) -> tuple[Check, ...]:
    """Before 1.36 the node, not the API, refused what it can never hold. Without `knows_node` the checks that ask about
    the node are left out: to whoever may not read it, it is not missing.
    """
    checks = (
        RESIZE_CHECKS if age.checks_capacity and knows_node else tuple(c for c in RESIZE_CHECKS if c not in NODE_CHECKS)
    )
    if age.lowers_memory:
        return checks
    return tuple(
        part
        for check in checks
        for part in ((check, replace(check, errors=_memory_kept)) if check.name == VALIDATION else (check,))
    )


def _memory_kept(resize: ResizeToCheck) -> list[FieldError]:
    """1.33 refused to lower a memory limit unless its policy was RestartContainer."""
    errors = []
    pairs = zip(resize.new.spec.containers, resize.old.spec.containers, strict=True)
    for index, (new, old) in enumerate(pairs):
        limit, before = (container.resources.limits.get("memory", ZERO) for container in (new, old))
        if before and lowers(limit, before) and not restarting(new, ["memory"]):
            text = "memory limits cannot be decreased unless resizePolicy is RestartContainer"
            errors.append(forbidden(f"spec.containers[{index}].resources.limits[memory]", text))
    return errors
