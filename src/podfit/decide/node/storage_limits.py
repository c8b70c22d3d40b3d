"""Local storage limits of pods: upstream's three limits, in its order and words.

volumes[].emptyDir.sizeLimit             one volume
limits of ephemeral-storage, all          everything that the pod has on the node's disk
limits of ephemeral-storage, each         writable layer and logs of the container
"""

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.pod_load import EPHEMERAL, EVERYTHING, Load, Used, is_local
from podfit.decide.pod.requests import pod_limits


def is_limited(pod: Pod) -> bool:
    """Whether any of the three is set, so that the pod has to be measured."""
    sizes = (volume.empty_dir.size_limit for volume in pod.spec.volumes if volume.empty_dir and is_local(volume))
    return any(sizes) or EPHEMERAL in pod_limits(pod)


class Exceeded(msgspec.Struct, frozen=True):
    """A limit that a pod exceeds: `signal` as metrics name it, and a message for people."""

    signal: str
    message: str


def exceeded(load: Load, *, split: bool) -> Exceeded | None:
    """The first limit that is exceeded. `split`: images and writable layers have a disk of
    their own, and then a container's layer does not count for its limit.
    """
    return _volume(load) or _pod(load) or _container(load, split=split)


def _volume(load: Load) -> Exceeded | None:
    for volume in load.pod.spec.volumes:
        limit = volume.empty_dir.size_limit if volume.empty_dir is not None else None
        used = load.storage.volumes.get(volume.name, Used()).bytes
        if limit is not None and 0 < limit.value() < used:
            text = f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{limit}". '
            return Exceeded("emptydirfs.limit", text)
    return None


def _pod(load: Load) -> Exceeded | None:
    limit = pod_limits(load.pod).get(EPHEMERAL)
    if limit is None or load.stored(EVERYTHING).bytes <= limit.value():
        return None
    text = f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
    return Exceeded("ephemeralpodfs.limit", text)


def _container(load: Load, *, split: bool) -> Exceeded | None:
    for container in load.pod.spec.containers:
        limit = container.resources.limits.get(EPHEMERAL)
        used = load.storage.logs.get(container.name, Used())
        if not split:
            used += load.storage.roots.get(container.name, Used())
        if limit is not None and 0 < limit.value() < used.bytes:
            text = f'Container {container.name} exceeded its local ephemeral storage limit "{limit}". '
            return Exceeded("ephemeralcontainerfs.limit", text)
    return None
