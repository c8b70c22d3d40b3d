"""Static pods, which a kubelet runs because of a file, and their mirrors: the marks of both."""

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import MIRROR, Pod

SOURCE = "kubernetes.io/config.source"
HASH = "kubernetes.io/config.hash"
SEEN = "kubernetes.io/config.seen"
FILE, API = "file", "api"
"""What `SOURCE` says; a pod that does not say comes from the API."""


def is_static(pod: Pod) -> bool:
    """A pod that runs because of a file."""
    return pod.metadata.annotations.get(SOURCE) == FILE and not is_mirror(pod)


def is_mirror(pod: Pod) -> bool:
    """The image of a static pod in the API, which nobody runs."""
    return MIRROR in pod.metadata.annotations


def mirrored_uid(mirror: Pod) -> str:
    """The UID of the static pod that it shows."""
    return mirror.metadata.annotations[MIRROR]


def from_api(pod: Pod) -> Pod:
    """Without a claim to come from elsewhere: it would make the pod critical, and only a file may do that."""
    if SOURCE not in pod.metadata.annotations:
        return pod
    honest = {name: text for name, text in pod.metadata.annotations.items() if name != SOURCE}
    return replace(pod, metadata=replace(pod.metadata, annotations=honest))
