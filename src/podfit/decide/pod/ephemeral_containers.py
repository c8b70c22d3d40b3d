"""Ephemeral containers, which `kubectl debug` adds to a pod that runs.

They are started once and never again, have no resources of their own, and nothing of the pod waits for them. Everything
that handles containers handles them in the form of one.
"""

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod


def ephemeral_containers(pod: Pod) -> tuple[Container, ...]:
    return tuple(
        Container(**{name: getattr(container, name) for name in Container.__struct_fields__})
        for container in pod.spec.ephemeral_containers
    )


def target(pod: Pod, name: str) -> str:
    """The container whose processes the ephemeral container sees; empty when it sees its own."""
    found = (container.target_container_name for container in pod.spec.ephemeral_containers if container.name == name)
    return next(found, "")


def every_container(pod: Pod) -> tuple[Container, ...]:
    """Ephemeral containers first, which is the order in which containers are started."""
    return (*ephemeral_containers(pod), *pod.spec.init_containers, *pod.spec.containers)


def field_path(pod: Pod, name: str) -> str:
    """The path of a container by name, such as `spec.containers{web}`; empty when the pod has none of that name."""
    kinds = (
        ("containers", pod.spec.containers),
        ("initContainers", pod.spec.init_containers),
        ("ephemeralContainers", pod.spec.ephemeral_containers),
    )
    return next(
        (f"spec.{kind}{{{name}}}" for kind, group in kinds if any(container.name == name for container in group)), ""
    )
