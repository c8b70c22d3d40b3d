"""The downward API: values of a pod's own fields and resources.

Resources come from the allocated pod as it is when the value is read, so an environment variable keeps what was
allocated at the container's start, while a volume follows a resize.
"""

import re
from collections.abc import Callable, Mapping

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.references import ResourceFieldSelector
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import effective

_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})

_FIELDS: Mapping[str, Callable[[Pod], str]] = {
    "metadata.name": lambda pod: pod.metadata.name,
    "metadata.namespace": lambda pod: pod.metadata.namespace,
    "metadata.uid": lambda pod: pod.metadata.uid,
    "metadata.labels": lambda pod: _map(pod.metadata.labels),
    "metadata.annotations": lambda pod: _map(pod.metadata.annotations),
    "spec.nodeName": lambda pod: pod.spec.node_name,
    "spec.serviceAccountName": lambda pod: pod.spec.service_account_name,
    "status.hostIP": lambda pod: pod.status.host_ip,
    "status.hostIPs": lambda pod: ",".join(ip.ip for ip in pod.status.host_ips),
    "status.podIP": lambda pod: pod.status.pod_ip,
    "status.podIPs": lambda pod: ",".join(ip.ip for ip in pod.status.pod_ips),
}


class Unsupported(Exception):
    """A field path or a resource that cannot be read this way."""


def field_value(pod: Pod, path: str) -> str:
    subscript = _SUBSCRIPT.match(path)
    if subscript is not None:
        of = pod.metadata.labels if subscript[1] == "labels" else pod.metadata.annotations
        return of.get(subscript[2], "")
    read = _FIELDS.get(path)
    if read is None:
        raise Unsupported(f"unsupported fieldPath: {path}")
    return read(pod)


def resource_value(pod: Pod, container: Container, selector: ResourceFieldSelector, allocatable: ResourceList) -> str:
    """A limit or request in units of the divisor, rounded up. Without a limit the node's allocatable counts."""
    owner = _container(pod, selector.container_name) if selector.container_name else container
    part, _, name = selector.resource.partition(".")
    resources = effective(pod, owner)
    if part == "limits":
        amount = resources.limits.get(name) or allocatable.get(name, Quantity.of(0))
    elif part == "requests":
        amount = resources.requests.get(name) or Quantity.of(0)
    else:
        raise Unsupported(f"unsupported container resource: {selector.resource}")
    divisor = selector.divisor.nano if selector.divisor else Quantity.of(1).nano
    return str(-(-amount.nano // divisor))


def _container(pod: Pod, name: str) -> Container:
    for container in all_containers(pod.spec):
        if container.name == name:
            return container
    raise Unsupported(f"container {name} not found")


def _map(entries: Mapping[str, str]) -> str:
    """`key="value"` a line, sorted, with Go's escapes for quotes, backslashes and line ends."""
    return "\n".join(f'{key}="{value.translate(_ESCAPES)}"' for key, value in sorted(entries.items()))
