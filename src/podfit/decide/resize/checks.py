"""The checks of a resize, in their order, as one list of data (R-008 to R-076).

The API server runs it, and so does `plan`, with what it has read of the cluster. Each check is of a stage of a write
(`decide.write_stages`): the order of the list is the order of the stages of a PATCH of `pods/resize`, and in a stage
that of the plugins. A check without a function is made by a plugin that only the request itself can ask, such as a
webhook; `plan` names those that may still refuse.

A pod with a burst ceiling is judged at it as well: the ceiling is a size that it may have at any moment.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.fields import FieldError, refusal
from podfit.decide.forbidden import Forbidden
from podfit.decide.limits.limit_range import add_defaults, check_limits
from podfit.decide.limits.quota import charge
from podfit.decide.pod.burst_ceiling import at_ceiling
from podfit.decide.resize.burst import ceiling_errors, check_ceiling
from podfit.decide.resize.node_support import check_capacity, check_features
from podfit.decide.resize.validation import prepare_resize, validate_resize
from podfit.decide.write_stages import Stage


class ResizeToCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A resize on its way: `new` is the stored pod `old` with other resources. `node` is None where it was not found,
    `quotas` are as charged so far.
    """

    new: Pod
    old: Pod
    node: Node | None = None
    limit_ranges: Sequence[LimitRange] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    gates: FeatureGates = DEFAULT_GATES


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is upstream's, of an admission plugin where it is one. `make` gives the resize as the next check sees it,
    or the error that the server would send; `errors` names what is wrong with it. Without either, only the server can
    tell.

    `updates`: it is made of an update of the pod itself, too.
    """

    name: str
    stage: Stage
    text: str
    make: Callable[[ResizeToCheck], ResizeToCheck | ApiError] | None = None
    errors: Callable[[ResizeToCheck], list[FieldError]] | None = None
    updates: bool = False


def _defaulted(resize: ResizeToCheck) -> ResizeToCheck:
    return replace(resize, new=default_pod(resize.new, resize.gates))


def _limited(resize: ResizeToCheck) -> ResizeToCheck:
    return resize if _leaves(resize) else replace(resize, new=add_defaults(resize.new, resize.limit_ranges))


def _prepared(resize: ResizeToCheck) -> ResizeToCheck:
    return replace(resize, new=prepare_resize(resize.new, resize.old, resize.gates))


def _errors(resize: ResizeToCheck) -> list[FieldError]:
    """The errors of the resize; with a burst ceiling, also those of the pod at it."""
    errors = validate_resize(resize.new, resize.old, resize.gates)
    errors = errors or ceiling_errors(resize.new, resize.old, resize.gates)
    raised = at_ceiling(resize.new, resize.gates)
    return errors if errors or raised is resize.new else validate_resize(raised, resize.old, resize.gates)


def _leaves(resize: ResizeToCheck) -> bool:
    """Nobody asks what the namespace of a pod that is being deleted allows."""
    return bool(resize.old.metadata.deletion_timestamp)


def _limits(resize: ResizeToCheck) -> ResizeToCheck | ApiError:
    raised = at_ceiling(resize.new, resize.gates)
    return resize if _leaves(resize) else _unless(check_limits(raised, resize.limit_ranges, resize.gates), resize)


def _features(resize: ResizeToCheck) -> ResizeToCheck | ApiError:
    return _unless(check_features(resize.new, resize.old, resize.node, resize.gates), resize)


def _capacity(resize: ResizeToCheck) -> ResizeToCheck | ApiError:
    raised = at_ceiling(resize.new, resize.gates)
    refused = check_capacity(raised, resize.old, resize.node, resize.gates)
    return _unless(refused or check_ceiling(resize.new, resize.old, resize.node, resize.gates), resize)


def _quota(resize: ResizeToCheck) -> ResizeToCheck | ApiError:
    charged = charge(resize.new, resize.old, resize.quotas, resize.gates)
    if isinstance(charged, Forbidden):
        return charged.error(resize.old.metadata.name)
    newer = {quota.metadata.name: quota for quota in charged.quotas}
    return replace(resize, quotas=tuple(newer.get(quota.metadata.name, quota) for quota in resize.quotas))


def _unless(refused: Forbidden | None, resize: ResizeToCheck) -> ResizeToCheck | ApiError:
    return resize if refused is None else refused.error(resize.old.metadata.name)


LIMIT_DEFAULTS, LIMITS, QUOTA = "LimitRanger defaults", "LimitRanger", "ResourceQuota"
MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS = "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"
NODE_RESTRICTION, VALIDATION = "NodeRestriction", "validation"
NODE_FEATURES, NODE_CAPACITY = "NodeDeclaredFeatureValidator", "PodResizeValidator"

RESIZE_CHECKS = (
    Check(name="RBAC", stage=Stage.AUTHORIZE, text="the user may patch or update pods/resize"),
    Check(
        name="defaults", stage=Stage.DEFAULT, text="a request follows from a limit, as in a new pod", make=_defaulted
    ),
    Check(
        name=LIMIT_DEFAULTS,
        stage=Stage.MUTATE,
        text="the namespace's defaults for what the request leaves out",
        make=_limited,
    ),
    Check(name=NODE_RESTRICTION, stage=Stage.MUTATE, text="403: no kubelet resizes a pod"),
    Check(
        name=MUTATING_WEBHOOKS,
        stage=Stage.MUTATE,
        text="webhooks whose rules cover pods/resize may change the object or refuse",
    ),
    Check(
        name="PodResizeStrategy",
        stage=Stage.PREPARE,
        text="all but resources, resize policies and the burst ceiling is dropped",
        make=_prepared,
    ),
    Check(
        name=VALIDATION, stage=Stage.VALIDATE, text="422: what a resize may change, QoS class, amounts", errors=_errors
    ),
    Check(name=LIMITS, stage=Stage.ADMIT, text="403: the namespace's minimum, maximum and ratio", make=_limits),
    Check(
        name=NODE_FEATURES,
        stage=Stage.ADMIT,
        text="403: the node declares what the resize needs",
        make=_features,
        updates=True,
    ),
    Check(
        name=NODE_CAPACITY, stage=Stage.ADMIT, text="403: no more than the node's allocatable, on Linux", make=_capacity
    ),
    Check(name=VALIDATING_WEBHOOKS, stage=Stage.ADMIT, text="webhooks whose rules cover pods/resize may refuse"),
    Check(
        name=QUOTA,
        stage=Stage.CHARGE,
        text="403: the namespace's quotas, charged with the growth",
        make=_quota,
        updates=True,
    ),
)
NODE_CHECKS = tuple(check for check in RESIZE_CHECKS if check.name in (NODE_FEATURES, NODE_CAPACITY))


def stages_of(checks: Iterable[Check]) -> tuple[Stage, ...]:
    """The stages in the order of their checks. Raises ValueError where those of one stage do not stand together."""
    stages = [check.stage for check in checks]
    ordered = tuple(dict.fromkeys(stages))
    if stages != sorted(stages, key=ordered.index):
        raise ValueError("checks of one stage stand together, as the server runs a stage once")
    return ordered


def checks_of(stage: Stage, checks: Sequence[Check] = RESIZE_CHECKS) -> tuple[Check, ...]:
    return tuple(check for check in checks if check.stage is stage)


def judge(resize: ResizeToCheck, checks: Sequence[Check] = RESIZE_CHECKS) -> ResizeToCheck | ApiError:
    """The resize as it would be stored, and the quotas as charged with it; or the error that the server would send."""
    for check in checks:
        if check.errors is not None and (errors := check.errors(resize)):
            return refusal("Pod", resize.old.metadata.name, errors)
        if check.make is not None:
            outcome = check.make(resize)
            if isinstance(outcome, ApiError):
                return outcome
            resize = outcome
    return resize


def judged(resize: ResizeToCheck, checks: Sequence[Check]) -> ResizeToCheck:
    """Does what `judge` does, and raises the error that is to be sent."""
    outcome = judge(resize, checks)
    if isinstance(outcome, ApiError):
        raise outcome
    return outcome
