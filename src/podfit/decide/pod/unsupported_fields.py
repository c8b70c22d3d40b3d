"""Warnings at a pod's creation for fields that this cluster's nodes do not implement.

What would be dangerous to pass over is refused by the node instead, with an event; docs/compatibility.md lists both.
"""

from collections.abc import Iterator

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.ephemeral_containers import every_container


def unsupported_fields(pod: Pod, routed: bool) -> list[str]:
    """A sentence for each, with the field that it is about. `routed`: pods have a network of their own."""
    shared = [] if routed else [*_of_the_nodes_network(pod)]
    return [*shared, *_of_pod(pod), *_of_containers(pod)]


def _of_the_nodes_network(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    names = [field for field, value in (("hostname", spec.hostname), ("subdomain", spec.subdomain)) if value]
    names += ["setHostnameAsFQDN"] if spec.set_hostname_as_fqdn else []
    names += ["hostnameOverride"] if spec.hostname_override else []
    for field in names:
        yield (
            f"spec.{field}: the kernel tells the node's name, as pods share its network; HOSTNAME, /etc/hostname and "
            "/etc/hosts have the pod's"
        )
    for container in every_container(pod):
        if any(port.host_port for port in container.ports) and not spec.host_network:
            yield f"container {container.name}: hostPort: pods share their node's network, so it is not mapped"


def _of_pod(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    if spec.host_users is False:
        yield "spec.hostUsers: podfit gives pods no user namespace of their own"
    if spec.resource_claims:
        yield "spec.resourceClaims: podfit allocates no devices"
    security = spec.security_context
    if security is not None and security.supplemental_groups_policy == "Strict":
        yield "spec.securityContext.supplementalGroupsPolicy: groups of the image are merged whatever it says"


def _of_containers(pod: Pod) -> Iterator[str]:
    for container in every_container(pod):
        if container.volume_devices:
            yield f"container {container.name}: volumeDevices: podfit attaches no block devices"
