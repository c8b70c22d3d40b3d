"""Equivalence groups of pending pods: pods of one controller that are alike need to be judged once.

Upstream's groups (cluster-autoscaler, core/scaleup/equivalence): equal labels and an equal spec, at most ten groups for
a controller, so that one which makes every pod different costs no more than its pods.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.pods.validation.alike import TOKEN_VOLUME
from podfit.api.meta.owners import ObjectIdentity, controller_named
from podfit.decide.capacity.drain import is_daemon_set_pod

MOST_GROUPS = 10
"""Groups of one controller; every further pod that is like none of them is a group of its own."""


class PodGroup(msgspec.Struct, frozen=True):
    """Pods of one shape, in the order in which they were given; there is at least one."""

    pods: tuple[Pod, ...]

    @property
    def first(self) -> Pod:
        return self.pods[0]


class _Shape(msgspec.Struct, frozen=True):
    spec: PodSpec
    pods: list[Pod]


def pod_groups(pods: Sequence[Pod]) -> list[PodGroup]:
    """The groups in the order of their first pods. Pods without controller and daemon set pods stand alone."""
    groups: list[list[Pod]] = []
    known: dict[ObjectIdentity, list[_Shape]] = {}
    for pod in pods:
        owner = controller_named(pod.metadata)
        if owner is None or is_daemon_set_pod(pod):
            groups.append([pod])
            continue
        shapes, spec = known.setdefault(owner, []), _compared(pod.spec)
        alike = next((shape for shape in shapes if _is_alike(shape, spec, pod)), None)
        if alike is not None:
            alike.pods.append(pod)
            continue
        groups.append([pod])
        if len(shapes) < MOST_GROUPS:
            shapes.append(_Shape(spec, groups[-1]))
    return [PodGroup(tuple(group)) for group in groups]


def _is_alike(shape: _Shape, spec: PodSpec, pod: Pod) -> bool:
    return shape.pods[0].metadata.labels == pod.metadata.labels and shape.spec == spec


def _compared(spec: PodSpec) -> PodSpec:
    """Without the random names of token volumes, and what mounts them."""
    random = {volume.name for volume in spec.volumes if volume.projected and volume.name.startswith(TOKEN_VOLUME)}
    if not random:
        return spec
    containers, initial = (
        tuple(
            replace(
                container, volume_mounts=tuple(mount for mount in container.volume_mounts if mount.name not in random)
            )
            for container in some
        )
        for some in (spec.containers, spec.init_containers)
    )
    volumes = tuple(volume for volume in spec.volumes if volume.name not in random)
    return replace(spec, containers=containers, init_containers=initial, volumes=volumes)
