"""The strategy of pods and of their subresources: resize, status, ephemeral containers."""

from collections.abc import Sequence

from msgspec.structs import replace

from podfit.api.core.v1.pods.burst import with_ceiling_of
from podfit.api.core.v1.pods.disabled import without_disabled
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import GATED, Pod, PodCondition, PodStatus
from podfit.api.core.v1.pods.validation import status, updates
from podfit.api.core.v1.pods.validation.deprecations import with_app_armor
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.registry.strategies.strategy import DeleteStrategy, Strategy, UpdateStrategy
from podfit.apiserver.request.legacy_options import POD_UPDATES, STATUS, Legacy
from podfit.apiserver.request.legacy_rules import is_only_a_resize
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError
from podfit.decide.lifecycle.termination import spec_grace
from podfit.decide.pod.qos import qos_class
from podfit.decide.pod.unsupported_fields import unsupported_fields
from podfit.decide.resize.checks import RESIZE_CHECKS, ResizeToCheck, checks_of, judged, stages_of
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity

_PREPARE, _VALIDATE = checks_of(Stage.PREPARE), checks_of(Stage.VALIDATE)
SHORTEST_GRACE = 1  # seconds, which a negative number stands for
LONGEST_GRACE = 100 * 365 * 86400  # what comes after cannot be written as a time


def _new(_info: ResourceInfo, obj: Pod, gates: FeatureGates) -> Pod:
    pending = PodStatus(phase="Pending", qos_class=qos_class(obj, gates), conditions=_gated(obj))
    return replace(obj, metadata=replace(with_ceiling_of(None, obj.metadata), generation=1), status=pending)


def _gated(pod: Pod) -> tuple[PodCondition, ...]:
    """A pod with gates says from the start that nobody will schedule it yet."""
    if not pod.spec.scheduling_gates:
        return ()
    condition = PodCondition(
        type="PodScheduled",
        status="False",
        last_transition_time=pod.metadata.creation_timestamp,
        reason="SchedulingGated",
        message=GATED,
    )
    return (condition,)


def _complete(obj: Pod, _identity: Identity) -> tuple[Pod, Sequence[str]]:
    return with_app_armor(without_disabled(obj))


def _changed(_info: ResourceInfo, new: Pod, old: Pod, _gates: FeatureGates) -> Pod:
    return updates.prepare_pod_update(new, old)


def _resized(_info: ResourceInfo, new: Pod, old: Pod, gates: FeatureGates) -> Pod:
    return judged(ResizeToCheck(new=new, old=old, gates=gates), _PREPARE).new


def _resize_errors(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    resize = ResizeToCheck(new=new, old=old, gates=gates)
    return [error for check in _VALIDATE if check.errors is not None for error in check.errors(resize)]


def _status(_info: ResourceInfo, new: Pod, old: Pod, _gates: FeatureGates) -> Pod:
    return updates.prepare_status_update(new, old)


def _status_errors(new: Pod, old: Pod, _gates: FeatureGates) -> list[FieldError]:
    return status.validate_status_update(new, old)


def _ephemeral_containers(_info: ResourceInfo, new: Pod, old: Pod, _gates: FeatureGates) -> Pod:
    return updates.prepare_ephemeral_update(new, old)


def _grace(pod: Pod, options: DeleteOptions) -> int:
    """Only a pod that may run on a node needs any."""
    if not pod.spec.node_name or has_ended(pod):
        return 0
    asked = options.grace_period_seconds
    if asked is None:
        asked = spec_grace(pod)
    return min(asked if asked >= 0 else SHORTEST_GRACE, LONGEST_GRACE)


def _legacy_subresource(legacy: Legacy, new: Pod, old: Pod) -> str:
    """A resize that comes through the pod itself is one (H-07)."""
    return "resize" if POD_UPDATES in legacy and is_only_a_resize(new, old) else ""


def _without_echo(legacy: Legacy, new: Pod, old: Pod) -> Pod:
    """A pod without the derived field that a client read and sends back (H-10)."""
    return replace(new, status=replace(new.status, resize=old.status.resize)) if STATUS in legacy else new


STRATEGY = Strategy(
    resets={"status": {"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}},
    prepare_create=_new,
    complete=_complete,
    unsupported_fields=unsupported_fields,
    update=UpdateStrategy(prepare=_changed),
    subresources={
        "resize": UpdateStrategy(
            prepare=_resized, validate=_resize_errors, writes_dropped=True, order=stages_of(RESIZE_CHECKS)
        ),
        "status": UpdateStrategy(prepare=_status, validate=_status_errors),
        "ephemeralcontainers": UpdateStrategy(
            prepare=_ephemeral_containers, validate=updates.validate_ephemeral_update
        ),
    },
    delete=DeleteStrategy(grace=_grace, answered_with_object=True, shown_as_marked=True),
    legacy_subresource=_legacy_subresource,
    without_echo=_without_echo,
)
