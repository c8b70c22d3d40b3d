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
from podfit.decide.pod.qos import held_class, qos_class
from podfit.decide.resize.restart_policy import restarting

_CONTAINERS, _INIT_CONTAINERS = "containers", "initContainers"
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
    containers, inits = old.containers, old.init_containers
    if len(new.containers) != len(containers) or len(new.init_containers) != len(inits):
        return new
    return msgspec.structs.replace(
        old,
        containers=_carried(new.containers, containers),
        init_containers=_carried(new.init_containers, inits),
        resources=new.resources if gates[_LEVEL_GATE] else old.resources,
    )


def _carried(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    if new is old or _names(new) != _names(old):
        return new
    return tuple([_taking(stored, sent) for sent, stored in zip(new, old, strict=True)])


def _taking(container: Container, other: Container) -> Container:
    """The container with the resources and the resize policy of the other; itself where they are the same."""
    resources, policy = other.resources, other.resize_policy
    if resources is container.resources and policy is container.resize_policy:
        return container
    return msgspec.structs.replace(container, resources=resources, resize_policy=policy)


def _names(containers: tuple[Container, ...]) -> list[str]:
    return [container.name for container in containers]


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
        before=old.spec,
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
    stored = held_class(old, gates)
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
    for name, sent, stored in (
        (_CONTAINERS, new.containers, old.containers),
        (_INIT_CONTAINERS, new.init_containers, old.init_containers),
    ):
        if len(sent) != len(stored):
            errors.append(forbidden(f"spec.{name}", f"{name} may not be added or removed on resize"))
        elif _names(sent) != _names(stored):
            errors += _renamed(sent, stored, name)
    return errors


def _renamed(sent: tuple[Container, ...], stored: tuple[Container, ...], name: str) -> list[FieldError]:
    return [
        forbidden(f"spec.{name}[{index}].name", f"{name} may not be renamed or reordered on resize")
        for index, (one, other) in enumerate(zip(sent, stored, strict=True))
        if one.name != other.name
    ]


def _removals(new: PodSpec, old: PodSpec, gates: FeatureGates) -> list[FieldError]:
    return [
        forbidden(f"spec.{name}[{index}].resources.{side}", f"resource {side} cannot be removed")
        for name, index, sent, stored in _pairs(new, old)
        if sent is not stored and (name == _CONTAINERS or _resizable(stored, gates))
        for side in _removed(sent.resources, stored.resources)
    ]


def _removed(new: ResourceRequirements, old: ResourceRequirements) -> list[str]:
    """The sides that lost a name."""
    return [side for side in ("requests", "limits") if not getattr(old, side).keys() <= getattr(new, side).keys()]


def _pairs(new: PodSpec, old: PodSpec) -> Iterator[tuple[str, int, Container, Container]]:
    """Each container, sent and stored, with the name of its list and its place there."""
    for index, (sent, stored) in enumerate(zip(new.containers, old.containers, strict=True)):
        yield _CONTAINERS, index, sent, stored
    for index, (sent, stored) in enumerate(zip(new.init_containers, old.init_containers, strict=True)):
        yield _INIT_CONTAINERS, index, sent, stored


def _mutations(new: PodSpec, old: PodSpec, gates: FeatureGates) -> list[FieldError]:
    """A container that uses claims counts as changed, whatever was sent: upstream compares it with one rebuilt without
    them. `resizePolicy` passes the preparation and is refused here."""
    errors = []
    for name, index, sent, stored in _pairs(new, old):
        if name == _CONTAINERS:
            errors += [] if _only_sized(sent, stored) else [forbidden("spec", _ONLY)]
        elif not _resizable(stored, gates):
            if sent != stored:
                errors.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
        elif not _only_sized(sent, stored):
            path = f"spec.{name}[{index}]"
            errors.append(forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable"))
        elif sent != stored and not is_sidecar(stored) and restarting(stored):
            text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors.append(forbidden(f"spec.{name}[{index}]", text))
    return errors


def _resizable(container: Container, gates: FeatureGates) -> bool:
    return is_sidecar(container) or gates[_INIT_GATE]


def _only_sized(sent: Container, stored: Container) -> bool:
    """Whether nothing but CPU and memory of `stored` is otherwise, and it has no claims."""
    if stored.resources.claims or sent is stored:
        return not stored.resources.claims
    if _without_resizable(sent.resources) != _without_resizable(stored.resources):
        return False
    return msgspec.structs.replace(sent, resources=stored.resources) == stored


def _masked(new: PodSpec, old: PodSpec) -> PodSpec:
    """`new` with everything that was judged above taken from `old`."""
    return msgspec.structs.replace(
        new,
        containers=tuple(map(_taking, new.containers, old.containers)),
        init_containers=tuple(map(_taking, new.init_containers, old.init_containers)),
        resources=old.resources,
    )
