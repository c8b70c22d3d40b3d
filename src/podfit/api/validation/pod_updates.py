"""What an update of a stored pod may change, through the main endpoint, status, binding and ephemeral containers."""

from ipaddress import ip_address

import msgspec

from podfit.api.core.containers import Container
from podfit.api.core.pods import Pod, PodIP, PodSpec
from podfit.api.validation.meta import nonnegative, validate_meta_update
from podfit.api.validation.pods import MIRROR, WHOLE, validate_pod
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, forbidden, invalid

IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def prepare_pod_update(new: Pod, old: Pod) -> Pod:
    """Status is another endpoint's; the generation counts changes of the spec."""
    generation = old.metadata.generation + (new.spec != old.spec)
    metadata = msgspec.structs.replace(new.metadata, generation=generation)
    return msgspec.structs.replace(new, metadata=metadata, status=old.status)


def prepare_status_update(new: Pod, old: Pod) -> Pod:
    """Only status, and metadata but its generation and owners; what the writer does not say about generations stays
    known (spec 1.8), and the address is the first of the addresses."""
    status = new.status
    before = {condition.type: condition.observed_generation for condition in old.status.conditions}
    conditions = tuple(
        each
        if each.observed_generation
        else msgspec.structs.replace(each, observed_generation=before.get(each.type, 0))
        for each in status.conditions
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
    metadata = msgspec.structs.replace(new.metadata, generation=kept.generation, owner_references=kept.owner_references)
    return msgspec.structs.replace(new, metadata=metadata, spec=old.spec, status=status)


def validate_pod_update(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    """R-007: images, a shorter deadline, more tolerations, fewer scheduling gates; nothing else."""
    tolerated = {container.name for container in old.spec.init_containers}
    errors = validate_meta_update(new.metadata, old.metadata) + validate_pod(new, gates, tolerated=tolerated)
    if (new.metadata.annotations.get(MIRROR)) != (old.metadata.annotations.get(MIRROR)):
        errors.append(forbidden(f"metadata.annotations[{MIRROR}]", "may not be changed"))
    for attribute, name in (("containers", "containers"), ("init_containers", "initContainers")):
        if len(getattr(new.spec, attribute)) != len(getattr(old.spec, attribute)):
            errors.append(forbidden(f"spec.{name}", f"pod updates may not add or remove {_spoken(name)}"))
            return errors
    errors += _deadline(new.spec, old.spec) + _tolerations(new.spec, old.spec) + _scheduling_gates(new.spec, old.spec)
    if _pardoned(new.spec, old.spec) != old.spec:
        errors.append(forbidden("spec", IMMUTABLE))
    return errors


def _spoken(name: str) -> str:
    return "init containers" if name == "initContainers" else name


def _deadline(new: PodSpec, old: PodSpec) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    before, after = old.active_deadline_seconds, new.active_deadline_seconds
    if before is None or before == after:
        return []
    if after is None:
        return [invalid(path, None, "must not update from a positive integer to nil value")]
    return [invalid(path, after, "must be less than or equal to previous value")] if after > before else []


def _tolerations(new: PodSpec, old: PodSpec) -> list[FieldError]:
    if all(toleration in new.tolerations for toleration in old.tolerations):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _scheduling_gates(new: PodSpec, old: PodSpec) -> list[FieldError]:
    known = {gate.name for gate in old.scheduling_gates}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.name}'",
        )
        for index, gate in enumerate(new.scheduling_gates)
        if gate.name not in known
    ]


def _pardoned(new: PodSpec, old: PodSpec) -> PodSpec:
    """`new` with all that may change, or was refused already, taken from `old`."""
    negative = old.termination_grace_period_seconds is not None and old.termination_grace_period_seconds < 0
    grace = new.termination_grace_period_seconds
    return msgspec.structs.replace(
        new,
        containers=_images(new.containers, old.containers),
        init_containers=_images(new.init_containers, old.init_containers),
        active_deadline_seconds=old.active_deadline_seconds,
        tolerations=old.tolerations,
        scheduling_gates=old.scheduling_gates,
        node_selector=old.node_selector if old.scheduling_gates else new.node_selector,
        affinity=old.affinity if old.scheduling_gates else new.affinity,
        termination_grace_period_seconds=old.termination_grace_period_seconds if negative and grace == 1 else grace,
    )


def _images(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(msgspec.structs.replace(sent, image=stored.image) for sent, stored in zip(new, old, strict=True))


def validate_status_update(new: Pod, old: Pod) -> list[FieldError]:
    errors = validate_meta_update(new.metadata, old.metadata)
    path = "status"
    if old.spec.node_name and new.spec.node_name != old.spec.node_name:
        errors.append(forbidden("spec.nodeName", "may not be changed directly"))
    errors += _generation(new.status.observed_generation, f"{path}.observedGeneration")
    for index, condition in enumerate(new.status.conditions):
        errors += _generation(condition.observed_generation, f"{path}.conditions[{index}].observedGeneration")
    if new.status.qos_class != old.status.qos_class:
        errors.append(invalid(f"{path}.qosClass", new.status.qos_class, "field is immutable"))
    for index, pod_ip in enumerate(new.status.pod_ips):
        errors += _address(pod_ip.ip, f"{path}.podIPs[{index}]")
    for name in ("container_statuses", "init_container_statuses"):
        for index, status in enumerate(getattr(new.status, name)):
            where = (
                f"{path}.{'containerStatuses' if name == 'container_statuses' else 'initContainerStatuses'}[{index}]"
            )
            errors += nonnegative(status.restart_count, f"{where}.restartCount")
    return errors


def _generation(number: int, path: str) -> list[FieldError]:
    return [invalid(path, number, "must be a non-negative integer")] if number < 0 else []


def _address(text: str, path: str) -> list[FieldError]:
    try:
        ip_address(text)
    except ValueError:
        return [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


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
    """Guests may come; they neither change nor leave."""
    path = "spec.ephemeralContainers"
    tolerated = {container.name for container in old.spec.init_containers}
    errors = validate_meta_update(new.metadata, old.metadata) + validate_pod(new, gates, tolerated=tolerated)
    if MIRROR in old.metadata.annotations:
        errors.append(forbidden(WHOLE, "static pods do not support ephemeral containers"))
    present = {container.name: container for container in new.spec.ephemeral_containers}
    for container in old.spec.ephemeral_containers:
        if container.name not in present:
            errors.append(forbidden(path, f'existing ephemeral containers "{container.name}" may not be removed\n'))
        elif present[container.name] != container:
            errors.append(forbidden(path, f'existing ephemeral containers "{container.name}" may not be changed\n'))
    return errors
