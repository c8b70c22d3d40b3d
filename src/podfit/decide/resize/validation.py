"""Validation of `pods/resize`: what may change, and upstream's error messages.

`prepare_resize` takes from the client's object only what a resize is about, so that a whole pod can be sent back with a
changed number in it. `validate_resize` then asks, in the API's order, whether what is left may change.
"""

from collections.abc import Iterator

import msgspec

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.burst import with_ceiling_of
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.pods.validation.pod import WHOLE, validate_pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.validation.metadata import validate_meta_update
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, forbidden, invalid
from podfit.core.resources import CPU, MEMORY
from podfit.decide.pod.qos import qos_class
from podfit.decide.resize.restart_policy import restarting

_PREPARED = ("containers", "init_containers")
_NOTHING = ResourceRequirements()
_RESIZABLE = (CPU, MEMORY)
_ONLY = "only cpu and memory resources are mutable"
_INIT_GATE = "InPlacePodVerticalScalingInitContainers"
_LEVEL_GATE = "InPlacePodLevelResourcesVerticalScaling"


def prepare_resize(new: Pod, old: Pod, gates: FeatureGates) -> Pod:
    """The stored pod with the resources and resize policies of `new`; its generation one more if that changes anything.

    A list of containers that cannot be matched is kept as sent, for validation to name what is wrong with it. Labels,
    annotations, images, status and the rest of `new` are dropped silently (R-008), but for the burst ceiling, which is
    set here and nowhere else; managedFields are kept as sent, and so is what says which object is meant.
    """
    spec = _prepared(new.spec, old.spec, gates)
    metadata = msgspec.structs.replace(
        with_ceiling_of(new.metadata, old.metadata),
        name=new.metadata.name,
        uid=new.metadata.uid or old.metadata.uid,
        generation=old.metadata.generation + (spec != old.spec),
        managed_fields=new.metadata.managed_fields,
        resource_version=new.metadata.resource_version,
    )
    return msgspec.structs.replace(old, metadata=metadata, spec=spec)


def _prepared(new: PodSpec, old: PodSpec, gates: FeatureGates) -> PodSpec:
    if any(len(getattr(new, name)) != len(getattr(old, name)) for name in _PREPARED):
        return new
    changed = {name: _carried(getattr(new, name), getattr(old, name)) for name in _PREPARED}
    level = new.resources if gates[_LEVEL_GATE] else old.resources
    return msgspec.structs.replace(old, **changed, resources=level)


def _carried(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    if any(sent.name != stored.name for sent, stored in zip(new, old, strict=True)):
        return new
    return tuple(
        msgspec.structs.replace(stored, resources=sent.resources, resize_policy=sent.resize_policy)
        for sent, stored in zip(new, old, strict=True)
    )


def validate_resize(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    """Every rule, in upstream's order; `new` has been prepared."""
    if is_mirror(old):
        return [forbidden(WHOLE, "static pods cannot be resized")]
    if old.spec.os is not None and old.spec.os.name == "windows":
        return [forbidden(WHOLE, "windows pods cannot be resized")]
    errors = validate_meta_update(new.metadata, old.metadata)
    errors += validate_pod(
        new,
        gates,
        tolerated={container.name for container in old.spec.init_containers if restarting(container)},
        resized=True,
    )
    errors += _same_class(new, old, gates)
    errors += _supported(old)
    if _has_level(old) or _has_level(new):
        if not gates[_LEVEL_GATE]:
            text = (
                "resize of pods with pod-level resources is forbidden when "
                "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            )
            return [*errors, forbidden(WHOLE, text)]
        errors += _pod_level(new.spec.resources, old.spec.resources)
    if old.status.node_allocatable_resource_claim_statuses:
        errors.append(forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    if shape := _shape(new.spec, old.spec):
        return errors + shape
    errors += _removals(new.spec, old.spec, gates)
    errors += _mutations(new.spec, old.spec, gates)
    if not errors and _masked(new.spec, old.spec) != old.spec:
        errors.append(forbidden("spec", _ONLY))
    return errors


def _same_class(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    stored = old.status.qos_class or qos_class(old, gates)
    if qos_class(new, gates) == stored:
        return []
    return [invalid("spec", stored, "Pod QOS Class may not change as a result of resizing")]


def _supported(old: Pod) -> list[FieldError]:
    """A node that reports no resources of what runs does not know how to change them (R-031)."""
    running = (status for status in old.status.container_statuses if status.state.running is not None)
    first = next(running, None)
    if first is None or first.resources is not None:
        return []
    return [forbidden("spec", "Pod running on node without support for resize")]


def _has_level(pod: Pod) -> bool:
    level = pod.spec.resources
    return level is not None and bool(level.requests or level.limits)


def _pod_level(new: ResourceRequirements | None, old: ResourceRequirements | None) -> list[FieldError]:
    if new is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    before = old or _NOTHING
    errors = [
        forbidden(f"spec.resources.{side}", f"pod-level resource {side} cannot be removed")
        for side in _removed(new, before)
    ]
    if _without_resizable(new) != _without_resizable(before) or new.claims != before.claims:
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    return errors


def _without_resizable(resources: ResourceRequirements) -> tuple[ResourceList, ResourceList]:
    def rest(amounts: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name not in _RESIZABLE}

    return rest(resources.requests), rest(resources.limits)


def _shape(new: PodSpec, old: PodSpec) -> list[FieldError]:
    errors = []
    for attribute, name in (("containers", "containers"), ("init_containers", "initContainers")):
        sent, stored = getattr(new, attribute), getattr(old, attribute)
        if len(sent) != len(stored):
            errors.append(forbidden(f"spec.{name}", f"{name} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(f"spec.{name}[{index}].name", f"{name} may not be renamed or reordered on resize")
            for index, (one, other) in enumerate(zip(sent, stored, strict=True))
            if one.name != other.name
        ]
    return errors


def _removals(new: PodSpec, old: PodSpec, gates: FeatureGates) -> list[FieldError]:
    errors = []
    for path, sent, stored in _pairs(new, old):
        if path.startswith("spec.initContainers") and not _resizable(stored, gates):
            continue
        errors += [
            forbidden(f"{path}.resources.{side}", f"resource {side} cannot be removed")
            for side in _removed(sent.resources, stored.resources)
        ]
    return errors


def _removed(new: ResourceRequirements, old: ResourceRequirements) -> list[str]:
    """The sides that lost a name."""
    return [side for side in ("requests", "limits") if not getattr(old, side).keys() <= getattr(new, side).keys()]


def _pairs(new: PodSpec, old: PodSpec) -> Iterator[tuple[str, Container, Container]]:
    for attribute, name in (("containers", "containers"), ("init_containers", "initContainers")):
        for index, pair in enumerate(zip(getattr(new, attribute), getattr(old, attribute), strict=True)):
            yield f"spec.{name}[{index}]", *pair


def _mutations(new: PodSpec, old: PodSpec, gates: FeatureGates) -> list[FieldError]:
    """A container that uses claims counts as changed, whatever was sent: upstream compares it with one rebuilt without
    them. `resizePolicy` passes the preparation and is refused here."""
    errors = []
    for path, sent, stored in _pairs(new, old):
        if path.startswith("spec.containers"):
            errors += [] if _restored(sent, stored) == stored else [forbidden("spec", _ONLY)]
        elif not _resizable(stored, gates):
            if sent != stored:
                errors.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
        elif _restored(sent, stored) != stored:
            errors.append(forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable"))
        elif sent != stored and not is_sidecar(stored) and restarting(stored):
            text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors.append(forbidden(path, text))
    return errors


def _resizable(container: Container, gates: FeatureGates) -> bool:
    return is_sidecar(container) or gates[_INIT_GATE]


def _restored(sent: Container, stored: Container) -> Container:
    """`sent` with the CPU and memory of `stored`, rebuilt without claims."""

    def side(new: ResourceList, old: ResourceList) -> ResourceList:
        kept = {name: amount for name, amount in new.items() if name not in _RESIZABLE}
        return kept | {name: amount for name, amount in old.items() if name in _RESIZABLE}

    resources = ResourceRequirements(
        requests=side(sent.resources.requests, stored.resources.requests),
        limits=side(sent.resources.limits, stored.resources.limits),
    )
    return msgspec.structs.replace(sent, resources=resources)


def _masked(new: PodSpec, old: PodSpec) -> PodSpec:
    """`new` with everything that was judged above taken from `old`."""
    lists = {
        name: tuple(
            msgspec.structs.replace(sent, resources=stored.resources, resize_policy=stored.resize_policy)
            for sent, stored in zip(getattr(new, name), getattr(old, name), strict=True)
        )
        for name in _PREPARED
    }
    return msgspec.structs.replace(new, **lists, resources=old.resources)
