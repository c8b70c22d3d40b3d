"""Validation of pod statuses."""

from collections.abc import Sequence

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodSpec
from podfit.api.core.v1.pods.validation.annotations import validate_annotation_update, validate_pod_annotations
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import address, family
from podfit.api.meta.validation.metadata import immutable, validate_meta_update
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, unsupported

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_HEALTHS = ("Healthy", "Unhealthy", "Unknown")
_STATUSES = (
    ("container_statuses", "containerStatuses"),
    ("init_container_statuses", "initContainerStatuses"),
    ("ephemeral_container_statuses", "ephemeralContainerStatuses"),
)
_ONE_EACH = "may specify no more than one IP for each IP family"


def validate_status_update(new: Pod, old: Pod) -> list[FieldError]:
    errors = validate_meta_update(new.metadata, old.metadata)
    after, before, annotations = new.metadata.annotations, old.metadata.annotations, "metadata.annotations"
    errors += validate_annotation_update(after, before, annotations)
    errors += validate_pod_annotations(after, new.spec, annotations)
    errors += _conditions(new.status.conditions, "status.conditions")
    if new.spec.node_name != old.spec.node_name:
        errors.append(forbidden("status.nodeName", "may not be changed directly"))
    errors += _nominated(new, old) + _generation(new.status.observed_generation, "status.observedGeneration")
    errors += immutable(new.status.qos_class, old.status.qos_class, "status.qosClass")
    told = [
        (attribute, name)
        for attribute, name in _STATUSES
        if getattr(new.status, attribute) or getattr(old.status, attribute)
    ]
    for attribute, name in told:
        errors += _transitions(new, old, attribute, f"status.{name}")
    errors += _claims(new) + _addresses(new, old)
    for attribute, name in told:
        errors += _users(getattr(new.status, attribute), new.spec, f"status.{name}")
    for attribute, name in told:
        errors += _devices(new, attribute, f"status.{name}")
    return errors


def _conditions(conditions: Sequence[PodCondition], path: str) -> list[FieldError]:
    errors = []
    for index, condition in enumerate(conditions):
        if condition.observed_generation < 0:
            errors += _generation(condition.observed_generation, f"{path}[{index}].observedGeneration")
        if condition.type not in _SYSTEM_CONDITIONS:
            problems = names.qualified(condition.type)
            errors += [invalid(f"{path}[{index}].Type", condition.type, text) for text in problems]
    return errors


def _generation(number: int, path: str) -> list[FieldError]:
    return [invalid(path, number, "must be a non-negative integer")] if number < 0 else []


def _nominated(new: Pod, old: Pod) -> list[FieldError]:
    node, path = new.status.nominated_node_name, "status.nominatedNodeName"
    if not node or node == old.status.nominated_node_name:
        return []
    errors = [invalid(path, node, text) for text in names.dns_subdomain(node)]
    if old.spec.node_name:
        errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    return errors


def _transitions(new: Pod, old: Pod, attribute: str, path: str) -> list[FieldError]:
    """What has ended for good does not run again."""
    if not [status for status in getattr(old.status, attribute) if status.state.terminated is not None]:
        return []
    text = "may not be transitioned to non-terminated state"
    ends = {status.name: status.state.terminated is not None for status in reversed(getattr(new.status, attribute))}
    return [
        forbidden(f"{path}[{index}].state", text)
        for index, status in enumerate(getattr(old.status, attribute))
        if status.state.terminated is not None
        and ends.get(status.name) is False
        and not _restarts(old.spec, attribute, status.name, status.state.terminated.exit_code)
    ]


def _restarts(spec: PodSpec, attribute: str, name: str, exit_code: int) -> bool:
    """Whether a container of this name runs again after this exit."""
    if attribute == "ephemeral_container_statuses":
        return False
    everything = all_containers(spec)
    if any(
        rule.action == "RestartAllContainers" for container in everything for rule in container.restart_policy_rules
    ):
        return True
    containers = spec.containers if attribute == "container_statuses" else spec.init_containers
    container = next((container for container in containers if container.name == name), None)
    return container is not None and starts_again(spec, container, exit_code)


def _claims(new: Pod) -> list[FieldError]:
    errors = []
    known = {claim.name for claim in new.spec.resource_claims}
    seen: set[str] = set()
    for index, status in enumerate(new.status.resource_claim_statuses):
        path = f"status.resourceClaimStatuses[{index}]"
        if status.name not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{path}.name", status.name, text))
        if status.name in seen:
            errors.append(duplicate(f"{path}.name", status.name))
        seen.add(status.name)
        name = status.resource_claim_name
        problems = names.dns_subdomain(name) if name else []
        errors += [invalid(f"{path}.resourceClaimName", name, text) for text in problems]
    return errors


def _addresses(new: Pod, old: Pod) -> list[FieldError]:
    """Addresses that were taken once may stay, whatever they look like."""
    ips, before = [ip.ip for ip in new.status.pod_ips], {ip.ip for ip in old.status.pod_ips}
    errors = _valid(ips, before, "status.podIPs")
    if len(ips) > 1 and not _dual(ips):
        errors.append(invalid("status.podIPs", [{"IP": ip} for ip in ips], _ONE_EACH))
    hosts, before = [ip.ip for ip in new.status.host_ips], {ip.ip for ip in old.status.host_ips}
    if hosts and new.status.host_ip != hosts[0]:
        errors.append(invalid("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`"))
    errors += _valid(hosts, before, "status.hostIPs")
    if len(hosts) > 1 and not _dual(hosts):
        errors.append(invalid("status.hostIPs", [{"IP": ip} for ip in hosts], _ONE_EACH))
    return errors


def _valid(ips: Sequence[str], before: set[str], path: str) -> list[FieldError]:
    return [error for index, ip in enumerate(ips) if ip not in before for error in address(ip, f"{path}[{index}]")]


def _dual(ips: Sequence[str]) -> bool:
    return len(ips) == 2 and {family(ip) for ip in ips} == {"IPv4", "IPv6"}


def _users(statuses: Sequence[ContainerStatus], spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    for index, status in enumerate(statuses):
        linux = status.user.linux if status.user else None
        if linux is None:
            continue
        where = f"{path}[{index}].user.linux"
        if spec.os is not None and spec.os.name == "windows":
            errors.append(forbidden(where, "cannot be set for a windows pod"))
            continue
        ids = [("uid", linux.uid), ("gid", linux.gid)]
        ids += [(f"supplementalGroups[{position}]", group) for position, group in enumerate(linux.supplemental_groups)]
        errors += [invalid(f"{where}.{name}", number, text) for name, number in ids for text in names.user_id(number)]
    return errors


def _devices(new: Pod, attribute: str, path: str) -> list[FieldError]:
    """The health of what a container holds besides processor and memory."""
    if not [status for status in getattr(new.status, attribute) if status.allocated_resources_status]:
        return []
    containers = new.spec.containers if attribute == "container_statuses" else new.spec.init_containers
    by_name = {container.name: container for container in containers}
    errors = []
    for index, status in enumerate(getattr(new.status, attribute)):
        if status.allocated_resources_status and attribute == "ephemeral_container_statuses":
            where = f"{path}[{index}].allocatedResourcesStatus"
            errors.append(forbidden(where, "must not be specified in container status"))
            continue
        for position, held in enumerate(status.allocated_resources_status):
            where = f"{path}[{index}].allocatedResourcesStatus[{position}]"
            container = by_name.get(status.name)
            errors += _held(held.name, container, f"{where}.name") if container else []
            seen: set[str] = set()
            for place, resource in enumerate(held.resources):
                at = f"{where}.resources[{place}]"
                if resource.health not in _HEALTHS:
                    errors.append(unsupported(f"{at}.health", resource.health, _HEALTHS))
                if resource.resource_id in seen:
                    errors.append(duplicate(f"{at}.resourceID", resource.resource_id))
                seen.add(resource.resource_id)
    return errors


def _held(name: str, container: Container, path: str) -> list[FieldError]:
    if not name.startswith("claim:"):
        text = "must match one of the container's resource requests"
        return [] if name in container.resources.requests else [invalid(path, name, text)]
    claims = {
        f"claim:{claim.name}/{claim.request}" if claim.request else f"claim:{claim.name}"
        for claim in container.resources.claims
    }
    text = (
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
        "'claim:<claimName>' if request is empty"
    )
    return [] if name in claims else [invalid(path, name, text)]
