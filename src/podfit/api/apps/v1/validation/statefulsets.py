"""Stateful sets."""

from msgspec.structs import replace

from podfit.api.apps.v1.statefulsets import (
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.validation.templates import (
    always_restarted,
    at_most_all,
    int_or_percent,
    matches,
    number_of,
    unmatched,
    validate_own_selector,
    validate_template,
)
from podfit.api.core.v1.pods.volumes import PersistentVolumeClaimVolumeSource, Volume
from podfit.api.meta.base import Object
from podfit.api.meta.selectors import is_usable
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import nonnegative
from podfit.api.meta.validation.rules import Rules
from podfit.api.meta.validation.statuses import at_most_replicas, collisions, counts
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported

_POLICIES = ("OrderedReady", "Parallel")
_RETENTION = ("Retain", "Delete")
_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_stateful_set(stateful: StatefulSet) -> list[FieldError]:
    spec = stateful.spec
    errors = _policy(spec.pod_management_policy, "spec.podManagementPolicy")
    errors += _strategy(spec.update_strategy, "spec.updateStrategy")
    errors += _retention(spec.persistent_volume_claim_retention_policy, "spec.persistentVolumeClaimRetentionPolicy")
    errors += nonnegative(spec.replicas, "spec.replicas")
    errors += nonnegative(spec.min_ready_seconds, "spec.minReadySeconds")
    if spec.ordinals is not None:
        errors += nonnegative(spec.ordinals.start, "spec.ordinals.start")
    if spec.service_name:
        errors += [invalid("spec.serviceName", spec.service_name, text) for text in names.dns_label(spec.service_name)]
    return errors + _pods(spec)


def _policy(policy: str, path: str) -> list[FieldError]:
    if not policy:
        return [required(path)]
    return [] if policy in _POLICIES else [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _strategy(strategy: StatefulSetUpdateStrategy, path: str) -> list[FieldError]:
    rolling = strategy.rolling_update
    shown = rolling and {"Partition": rolling.partition or 0, "MaxUnavailable": rolling.max_unavailable}
    match strategy.type:
        case "":
            return [required(path)]
        case "OnDelete":
            text = "only allowed for updateStrategy 'RollingUpdate'"
            return [invalid(f"{path}.rollingUpdate", shown, text)] if rolling is not None else []
        case "RollingUpdate":
            pass
        case other:
            given = {"Type": other, "RollingUpdate": shown}
            return [invalid(path, given, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    errors = nonnegative(rolling.partition, f"{path}.rollingUpdate.partition")
    path, unavailable = f"{path}.rollingUpdate.maxUnavailable", rolling.max_unavailable
    errors += int_or_percent(unavailable, path)
    if unavailable is not None and number_of(unavailable) == 0:
        errors.append(invalid(path, unavailable, "cannot be 0"))
    return errors + at_most_all(unavailable, path)


def _retention(policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None, path: str) -> list[FieldError]:
    if policy is None:
        return []
    given = (("whenDeleted", policy.when_deleted), ("whenScaled", policy.when_scaled))
    return [unsupported(f"{path}.{name}", value, _RETENTION) for name, value in given if value not in _RETENTION]


def _pods(spec: StatefulSetSpec) -> list[FieldError]:
    errors = validate_own_selector(spec.selector, "spec.selector", owner="statefulset")
    path = "spec.template"
    if not is_usable(spec.selector):
        errors.append(invalid("spec.selector", spec.selector, ""))
    else:
        if not matches(spec.selector, spec.template):
            errors.append(unmatched(spec.template, path))
        errors += validate_template(_with_claims(spec), path)
    return errors + always_restarted(spec.template.spec, f"{path}.spec", owner="StatefulSet")


def _with_claims(spec: StatefulSetSpec) -> PodTemplateSpec:
    """The template with the volumes that its pods get from claims, which containers may mount."""
    inside = spec.template.spec
    named = {claim.metadata.name for claim in spec.volume_claim_templates} - {volume.name for volume in inside.volumes}
    claimed = tuple(
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for name in sorted(named)
    )
    return replace(spec.template, spec=replace(inside, volumes=(*inside.volumes, *claimed)))


def validate_stateful_set_update(new: StatefulSet, old: StatefulSet) -> list[FieldError]:
    before = old.spec
    fixed = replace(
        new.spec,
        replicas=before.replicas,
        ordinals=before.ordinals,
        template=before.template,
        update_strategy=before.update_strategy,
        revision_history_limit=before.revision_history_limit,
        persistent_volume_claim_retention_policy=before.persistent_volume_claim_retention_policy,
        min_ready_seconds=before.min_ready_seconds,
    )
    errors = validate_stateful_set(new)
    return errors if fixed == before else [*errors, forbidden("spec", _FIXED)]


def validate_stateful_set_status(new: StatefulSet, old: StatefulSet) -> list[FieldError]:
    status = new.status
    errors = counts(
        status,
        "replicas",
        "ready_replicas",
        "current_replicas",
        "updated_replicas",
        "available_replicas",
        "observed_generation",
        "collision_count",
    )
    errors += at_most_replicas(status, "ready_replicas", "current_replicas", "updated_replicas", "available_replicas")
    if status.available_replicas > status.ready_replicas:
        text = "cannot be greater than status.readyReplicas"
        errors.append(invalid("status.availableReplicas", status.available_replicas, text))
    return errors + collisions(status.collision_count, old.status.collision_count)


RULES: dict[type[Object], Rules] = {
    StatefulSet: Rules(
        names.dns_label, validate_stateful_set, validate_stateful_set_update, validate_stateful_set_status
    )
}
