"""The API's checks of a resize, in their order, as one list of data (R-008 to R-076).

`plan` goes through it, the admission chain makes what asks the node (`NODE_CHECKS`) from it, and
`tests/apiserver/test_admission_order.py` holds the chain's order and the documentation to it. A
check without a function is made by somebody whom only the request itself can ask, such as a webhook; `plan` names those
that may still refuse.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.fields import refusal
from podfit.decide.forbidden import Forbidden
from podfit.decide.limits.limit_range import add_defaults, check_limits
from podfit.decide.limits.quota import charge
from podfit.decide.resize.node_support import check_capacity, check_features
from podfit.decide.resize.validation import prepare_resize, validate_resize


class Resize(msgspec.Struct, frozen=True, kw_only=True):
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
    or the error that the server would send; None where only the server can tell.

    `subresources` are those of a pod's update that an admission plugin looks at.
    """

    name: str
    text: str
    make: Callable[[Resize], Resize | ApiError] | None = None
    subresources: tuple[str, ...] = ("resize",)


def _defaults(resize: Resize) -> Resize:
    return replace(resize, new=add_defaults(default_pod(resize.new, resize.gates), resize.limit_ranges))


def _prepared(resize: Resize) -> Resize:
    return replace(resize, new=prepare_resize(resize.new, resize.old, resize.gates))


def _valid(resize: Resize) -> Resize | ApiError:
    errors = validate_resize(resize.new, resize.old, resize.gates)
    return refusal("Pod", resize.old.metadata.name, errors) if errors else resize


def _limits(resize: Resize) -> Resize | ApiError:
    return _unless(check_limits(resize.new, resize.limit_ranges, resize.gates), resize)


def _features(resize: Resize) -> Resize | ApiError:
    return _unless(check_features(resize.new, resize.old, resize.node, resize.gates), resize)


def _capacity(resize: Resize) -> Resize | ApiError:
    return _unless(check_capacity(resize.new, resize.old, resize.node, resize.gates), resize)


def _quota(resize: Resize) -> Resize | ApiError:
    charged = charge(resize.new, resize.old, resize.quotas, resize.gates)
    if isinstance(charged, Forbidden):
        return charged.error(resize.old.metadata.name)
    newer = {quota.metadata.name: quota for quota in charged.quotas}
    return replace(resize, quotas=tuple(newer.get(quota.metadata.name, quota) for quota in resize.quotas))


def _unless(refused: Forbidden | None, resize: Resize) -> Resize | ApiError:
    return resize if refused is None else refused.error(resize.old.metadata.name)


DEFAULTS, MUTATING_WEBHOOKS = "LimitRanger defaults", "MutatingAdmissionWebhook"
VALIDATION, VALIDATING_WEBHOOKS = "validation", "ValidatingAdmissionWebhook"
NODE_FEATURES, NODE_CAPACITY = "NodeDeclaredFeatureValidator", "PodResizeValidator"

RESIZE_CHECKS = (
    Check(name="RBAC", text="the user may patch or update pods/resize"),
    Check(name=DEFAULTS, text="the namespace's defaults for what the request leaves out", make=_defaults),
    Check(name=MUTATING_WEBHOOKS, text="webhooks whose rules cover pods/resize may change the object or refuse"),
    Check(name="PodResizeStrategy", text="all but resources and resize policies is dropped", make=_prepared),
    Check(name=VALIDATION, text="422: what a resize may change, QoS class, amounts", make=_valid),
    Check(name="LimitRanger", text="403: the namespace's minimum, maximum and ratio", make=_limits),
    Check(
        name=NODE_FEATURES,
        text="403: the node declares what the resize needs",
        make=_features,
        subresources=("", "resize"),
    ),
    Check(name=NODE_CAPACITY, text="403: no more than the node's allocatable, on Linux", make=_capacity),
    Check(name=VALIDATING_WEBHOOKS, text="webhooks whose rules cover pods/resize may refuse"),
    Check(
        name="ResourceQuota",
        text="403: the namespace's quotas, charged with the growth",
        make=_quota,
        subresources=("", "resize"),
    ),
)
NODE_CHECKS = tuple(check for check in RESIZE_CHECKS if check.name in (NODE_FEATURES, NODE_CAPACITY))


def judge(resize: Resize, checks: Sequence[Check] = RESIZE_CHECKS) -> Resize | ApiError:
    """The resize as it would be stored, and the quotas as charged with it; or the error that the server would send."""
    for check in checks:
        if check.make is not None:
            outcome = check.make(resize)
            if isinstance(outcome, ApiError):
                return outcome
            resize = outcome
    return resize
