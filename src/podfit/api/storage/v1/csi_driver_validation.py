"""CSIDriver: what a driver of volumes says of itself."""

from collections.abc import Sequence

from podfit.api.meta.validation.metadata import immutable
from podfit.api.storage.v1.types import CSIDriver, CSIDriverSpec, TokenRequest
from podfit.core.fields import FieldError, duplicate, invalid, required, unsupported

_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_SHORTEST, _LONGEST = 600, 2**32  # seconds of a token
_SHORTEST_PERIOD = 10  # seconds between two looks at how many volumes a node takes


def validate_driver(driver: CSIDriver) -> list[FieldError]:
    spec = driver.spec
    given = (
        (spec.attach_required, "attachedRequired"),
        (spec.pod_info_on_mount, "podInfoOnMount"),
        (spec.storage_capacity, "storageCapacity"),
    )
    errors = [required(f"spec.{name}") for value, name in given if value is None]
    policy = spec.fs_group_policy
    if policy is not None and policy not in _FS_GROUP_POLICIES:
        errors.append(unsupported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES))
    errors += _tokens(spec.token_requests, "spec.tokenRequests")
    for mode in spec.volume_lifecycle_modes:
        if mode not in _LIFECYCLES:
            errors.append(unsupported("spec.volumeLifecycleModes", mode, _LIFECYCLES))
    if spec.se_linux_mount is None:
        errors.append(required("spec.seLinuxMount"))
    return errors + _rest(spec)


def _rest(spec: CSIDriverSpec) -> list[FieldError]:
    errors, period = [], spec.node_allocatable_update_period_seconds
    if period is not None and period < _SHORTEST_PERIOD:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
        errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    in_secrets = spec.service_account_token_in_secrets
    if in_secrets is not None and not spec.token_requests:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, text))
    return errors


def _tokens(asked: Sequence[TokenRequest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(asked):
        if request.audience in seen:
            errors.append(duplicate(f"{path}[{index}].audience", request.audience))
            continue
        seen.add(request.audience)
        seconds, where = request.expiration_seconds, f"{path}[{index}].expirationSeconds"
        if seconds is not None and seconds < _SHORTEST:
            errors.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > _LONGEST:
            errors.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


def validate_driver_update(new: CSIDriver, old: CSIDriver) -> list[FieldError]:
    """Whether volumes are attached and whose they may be stays."""
    after, before = new.spec, old.spec
    errors = validate_driver(new)
    errors += immutable(after.attach_required, before.attach_required, "spec.attachedRequired")
    path = "spec.volumeLifecycleModes"
    return errors + immutable(after.volume_lifecycle_modes, before.volume_lifecycle_modes, path)
