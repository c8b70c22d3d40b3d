"""Validation of pod updates: through the main endpoint, and of ephemeral containers."""

from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from podfit.api.core.v1.pods.burst import with_ceiling_of
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod, PodIP, PodSpec
from podfit.api.core.v1.pods.validation.annotations import validate_annotation_update, validate_pod_annotations
from podfit.api.core.v1.pods.validation.containers import validate_images
from podfit.api.core.v1.pods.validation.pod import WHOLE, validate_pod
from podfit.api.core.v1.pods.validation.scheduling import validate_tolerations
from podfit.api.meta.validation.metadata import validate_meta_update
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, forbidden, invalid, required

_SELECTOR = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
_TERM = "only additions are allowed (no mutations or deletions)"


def validate_placement_update(new: PodSpec, old: PodSpec) -> list[FieldError]:
    errors = []
    if any(new.node_selector.get(key) != value for key, value in old.node_selector.items()):
        errors.append(invalid("spec.nodeSelector", new.node_selector or None, _SELECTOR))
    before, after = _terms(old.affinity), _terms(new.affinity)
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    if not before:
        return errors
    if len(before) != len(after):
        return [*errors, invalid(path, [_shown(term) for term in after] or None, _TERMS)]
    for index, (was, now) in enumerate(zip(before, after, strict=True)):
        if not _only_more(now, was):
            errors.append(invalid(f"{path}[{index}]", _shown(now), _TERM))
    return errors


def _terms(affinity: Affinity | None) -> tuple[NodeSelectorTerm, ...]:
    node = affinity.node_affinity if affinity else None
    selector = node.required_during_scheduling_ignored_during_execution if node else None
    return selector.node_selector_terms if selector else ()


def _only_more(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    if not old.match_expressions and not old.match_fields and (new.match_expressions or new.match_fields):
        return False  # an empty term selects nothing, a filled one would select something
    return all(
        now[: len(was)] == was
        for now, was in ((new.match_expressions, old.match_expressions), (new.match_fields, old.match_fields))
    )


def _shown(term: NodeSelectorTerm) -> dict[str, Any]:
    """A term under the names of the API server's own fields, as its message quotes it."""
    return {"MatchExpressions": _requirements(term.match_expressions), "MatchFields": _requirements(term.match_fields)}


def _requirements(requirements: tuple[NodeSelectorRequirement, ...]) -> list[dict[str, Any]] | None:
    shown = [
        {"Key": requirement.key, "Operator": requirement.operator, "Values": list(requirement.values) or None}
        for requirement in requirements
    ]
    return shown or None


def with_node_affinity_of(old: Affinity | None, new: Affinity | None) -> Affinity | None:
    """`new` with the node affinity of `old`."""
    was: NodeAffinity | None = old.node_affinity if old else None
    if (new.node_affinity if new else None) == was:
        return new
    changed = replace(new or Affinity(), node_affinity=was)
    return old if old is None and changed == Affinity() else changed


_LONGEST_DEADLINE = 2**31 - 1
IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def prepare_pod_update(new: Pod, old: Pod) -> Pod:
    """Status is another endpoint's, and so is the burst ceiling; the generation counts changes of the spec."""
    generation = old.metadata.generation + (new.spec != old.spec)
    metadata = msgspec.structs.replace(with_ceiling_of(old.metadata, new.metadata), generation=generation)
    return msgspec.structs.replace(new, metadata=metadata, status=old.status)


def prepare_status_update(new: Pod, old: Pod) -> Pod:
    """Only status, and metadata but its generation, owners and burst ceiling; what the writer does not say about
    generations stays known, and the address is the first of the addresses."""
    status = new.status
    before = {condition.type: condition.observed_generation for condition in old.status.conditions}
    conditions = tuple(
        [
            condition
            if condition.observed_generation
            else msgspec.structs.replace(condition, observed_generation=before.get(condition.type, 0))
            for condition in status.conditions
        ]
    )
    ips = status.pod_ips
    if status.pod_ip and (not ips or (ips[0].ip != status.pod_ip != old.status.pod_ip)):
        ips = (PodIP(ip=status.pod_ip),)
    status = msgspec.structs.replace(
        status,
        conditions=conditions,
        pod_ips=ips,
        pod_ip=ips[0].ip if ips else status.pod_ip,
        observed_generation=status.observed_generation or old.status.observed_generation,
        qos_class=status.qos_class or old.status.qos_class,
    )
    kept = old.metadata
    metadata = msgspec.structs.replace(
        with_ceiling_of(kept, new.metadata), generation=kept.generation, owner_references=kept.owner_references
    )
    return msgspec.structs.replace(new, metadata=metadata, spec=old.spec, status=status)


def validate_pod_update(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    """R-007: images, a shorter deadline, more tolerations, fewer scheduling gates; nothing else."""
    errors = _as_new(new, old, gates)
    for attribute, name in (("containers", "containers"), ("init_containers", "initContainers")):
        containers = getattr(new.spec, attribute)
        if len(containers) != len(getattr(old.spec, attribute)):
            errors.append(forbidden(f"spec.{name}", "pod updates may not add or remove containers"))
            return errors
        for index, container in enumerate(containers):
            errors += [] if container.image else [required(f"spec.{name}[{index}].image")]
        errors += validate_images(containers, f"spec.{name}")
    deadline = _deadline(new.spec, old.spec)
    errors += deadline
    if deadline and new.spec.active_deadline_seconds is not None:
        return errors
    errors += _tolerations(new.spec, old.spec) + _scheduling_gates(new.spec, old.spec)
    if old.spec.scheduling_gates:
        errors += validate_placement_update(new.spec, old.spec)
    if _pardoned(new.spec, old.spec) != old.spec:
        errors.append(forbidden("spec", IMMUTABLE))
    return errors


def _as_new(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    """The rules of creation, as far as the stored pod keeps them, and those of metadata."""
    tolerated = {container.name for container in old.spec.init_containers}
    errors = validate_meta_update(new.metadata, old.metadata) + validate_pod(new, gates, tolerated=tolerated)
    return errors + _annotations(new, old)


def _annotations(new: Pod, old: Pod) -> list[FieldError]:
    after, before, path = new.metadata.annotations, old.metadata.annotations, "metadata.annotations"
    errors = validate_annotation_update(after, before, path)
    return errors + validate_pod_annotations(after, new.spec, path)


def _deadline(new: PodSpec, old: PodSpec) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    before, after = old.active_deadline_seconds, new.active_deadline_seconds
    if after is None:
        text = "must not update from a positive integer to nil value"
        return [] if before is None else [invalid(path, None, text)]
    if not 0 <= after <= _LONGEST_DEADLINE:
        return [invalid(path, after, f"must be between 0 and {_LONGEST_DEADLINE}, inclusive")]
    if before is not None and after > before:
        return [invalid(path, after, "must be less than or equal to previous value")]
    return []


def _tolerations(new: PodSpec, old: PodSpec) -> list[FieldError]:
    """How long a taint is tolerated may change; that it is may not."""
    path = "spec.tolerations"
    kept = {_timeless(toleration) for toleration in new.tolerations}
    if any(_timeless(toleration) not in kept for toleration in old.tolerations):
        return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(new.tolerations, path)


def _timeless(toleration: Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _scheduling_gates(new: PodSpec, old: PodSpec) -> list[FieldError]:
    known = {gate.name for gate in old.scheduling_gates}
    places = {gate.name: index for index, gate in enumerate(new.scheduling_gates)}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name", f"only deletion is allowed, but found new scheduling gate '{name}'"
        )
        for name, index in places.items()
        if name not in known
    ]


def _pardoned(new: PodSpec, old: PodSpec) -> PodSpec:
    """`new` with all that may change, or was refused already, taken from `old`."""
    negative = old.termination_grace_period_seconds is not None and old.termination_grace_period_seconds < 0
    grace = new.termination_grace_period_seconds
    gated = bool(old.scheduling_gates)
    return msgspec.structs.replace(
        new,
        containers=_images(new.containers, old.containers),
        init_containers=_images(new.init_containers, old.init_containers),
        active_deadline_seconds=old.active_deadline_seconds,
        tolerations=old.tolerations,
        scheduling_gates=old.scheduling_gates,
        node_selector=old.node_selector if gated else new.node_selector,
        affinity=with_node_affinity_of(old.affinity, new.affinity) if gated else new.affinity,
        termination_grace_period_seconds=old.termination_grace_period_seconds if negative and grace == 1 else grace,
    )


def _images(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(msgspec.structs.replace(sent, image=stored.image) for sent, stored in zip(new, old, strict=True))


def prepare_ephemeral_update(new: Pod, old: Pod) -> Pod:
    spec = msgspec.structs.replace(old.spec, ephemeral_containers=new.spec.ephemeral_containers)
    generation = old.metadata.generation + (spec != old.spec)
    metadata = msgspec.structs.replace(
        old.metadata,
        generation=generation,
        resource_version=new.metadata.resource_version,
        managed_fields=new.metadata.managed_fields,
    )
    return msgspec.structs.replace(old, metadata=metadata, spec=spec)


def validate_ephemeral_update(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    """Ephemeral containers may be added; they neither change nor leave."""
    path = "spec.ephemeralContainers"
    errors = _as_new(new, old, gates)
    if is_mirror(old):
        return [forbidden(WHOLE, "static pods do not support ephemeral containers")]
    present = {container.name: container for container in new.spec.ephemeral_containers}
    for container in old.spec.ephemeral_containers:
        if container.name not in present:
            errors.append(forbidden(path, f'existing ephemeral containers "{container.name}" may not be removed\n'))
        elif present[container.name] != container:
            errors.append(forbidden(path, f'existing ephemeral containers "{container.name}" may not be changed\n'))
    return errors
