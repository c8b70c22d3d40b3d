"""The containers of a pod of whatever role, for those who only look for a name or a reference."""

from podfit.api.core.v1.pods.containers import Container, EphemeralContainer
from podfit.api.core.v1.pods.types import PodSpec


def every_container(spec: PodSpec) -> tuple[Container | EphemeralContainer, ...]:
    return (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)
