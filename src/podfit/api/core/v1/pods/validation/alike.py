"""Specs of one template: what is the same in all of their pods, so that rules without an objection are asked once.

Pods of a template differ by their node and by the volume of their account's token, whose name is generated. Sizes of
one pod differ by amounts.
"""

import re

from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.alike import has_amounts

TOKEN_VOLUME = "kube-api-access-"
"""How the volume of a service account's token is named, before a random end."""
_GENERATED = re.compile(rf"{TOKEN_VOLUME}[a-z0-9]{{5}}")
_NO_RESOURCES = ResourceRequirements()


def outline(spec: PodSpec) -> PodSpec:
    """Without names, volumes, which are made for each pod, and amounts."""
    containers, inits = map(_unsized, (spec.containers, spec.init_containers))
    return replace(
        spec, containers=containers, init_containers=inits, volumes=(), resources=None, node_name="", hostname=""
    )


def _unsized(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple([replace(container, volume_mounts=(), resources=_NO_RESOURCES) for container in containers])


class _Last:
    """The last spec and what was made of it: a new pod is judged, and then it is asked what is to be said of it."""

    made: tuple[PodSpec | None, PodSpec | None] = None, None


_last = _Last()


def generic(spec: PodSpec) -> PodSpec | None:
    """With one name for the generated one, and without the node; None where rules ask for the pod's own name, or there
    are several such volumes."""
    of, known = _last.made
    if of is not spec:
        known = _generic(spec)
        _last.made = spec, known
    return known


def _generic(spec: PodSpec) -> PodSpec | None:
    generated = [volume.name for volume in spec.volumes if volume.name.startswith(TOKEN_VOLUME)]
    ephemeral = [volume for volume in spec.volumes if volume.ephemeral is not None]
    if spec.ephemeral_containers or spec.resource_claims or ephemeral or len(generated) > 1:
        return None
    if not generated:
        return replace(spec, node_name="")
    name = generated[0]
    if not _GENERATED.fullmatch(name):
        return None
    volumes = [volume if volume.name != name else replace(volume, name=TOKEN_VOLUME) for volume in spec.volumes]
    return replace(
        spec,
        node_name="",
        volumes=tuple(volumes),
        containers=tuple([_mounting(container, name) for container in spec.containers]),
        init_containers=tuple([_mounting(container, name) for container in spec.init_containers]),
    )


def _mounting(container: Container, name: str) -> Container:
    mounts = [mount if mount.name != name else replace(mount, name=TOKEN_VOLUME) for mount in container.volume_mounts]
    return replace(container, volume_mounts=tuple(mounts))


def by_text(spec: PodSpec) -> bool:
    """Whether rules look at how an amount of the spec is written, as they do at divisors, and not at resources."""
    return has_amounts(replace(outline(spec), volumes=spec.volumes, overhead={}))


def texts(spec: PodSpec) -> list[str]:
    """What tells most specs apart."""
    return [text for container in spec.containers for text in (container.name, container.image)]
