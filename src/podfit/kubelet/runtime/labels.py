"""Labels and annotations on sandboxes and containers, from which everything can be rebuilt after a crash.

The keys are upstream's, so that other context on the node (crictl, log collectors) know whose container they look at.
`podfit.dev/node` is our own: several nodes, or another kubelet, may share one runtime, and each must clean up only
after itself.
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.lifecycle.actions import CONTAINER_HASH, definition_hash
from podfit.decide.lifecycle.termination import DEFAULT_GRACE, spec_grace
from podfit.decide.pod.naming import full_name

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
POD_GRACE = "io.kubernetes.pod.terminationGracePeriod"
CONTAINER_NAME = "io.kubernetes.container.name"
RESTART_COUNT = "io.kubernetes.container.restartCount"
MESSAGE_PATH = "podfit.dev/terminationMessageFile"
MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
NODE = "podfit.dev/node"
IMAGE_VOLUMES = "podfit.dev/imageVolumes"
"""The images that are mounted into a container, with spaces between them: they are in use."""


class PodRef(msgspec.Struct, frozen=True):
    """The identity of a pod, as the runtime's labels carry it."""

    uid: str
    name: str
    namespace: str

    def __str__(self) -> str:
        return full_name(self.name, self.namespace, self.uid)


def ref(pod: Pod) -> PodRef:
    return PodRef(pod.metadata.uid, pod.metadata.name, pod.metadata.namespace)


def pod_labels(pod: Pod, node: str) -> dict[str, str]:
    """The pod's own labels come first, so that they cannot forge ours."""
    meta = pod.metadata
    own = {POD_NAME: meta.name, POD_NAMESPACE: meta.namespace, POD_UID: meta.uid, NODE: node}
    return {**meta.labels, **own}


def pod_annotations(pod: Pod) -> dict[str, str]:
    return {**pod.metadata.annotations, POD_GRACE: str(spec_grace(pod))}


def container_labels(pod: Pod, container: Container) -> dict[str, str]:
    meta = pod.metadata
    return {POD_NAME: meta.name, POD_NAMESPACE: meta.namespace, POD_UID: meta.uid, CONTAINER_NAME: container.name}


def container_annotations(
    pod: Pod, container: Container, *, attempt: int, message_file: str, images: Iterable[str]
) -> dict[str, str]:
    """`images` are those that are mounted into it."""
    mounted = " ".join(sorted(images))
    return {
        **({IMAGE_VOLUMES: mounted} if mounted else {}),
        CONTAINER_HASH: definition_hash(container),
        RESTART_COUNT: str(attempt),
        POD_GRACE: str(spec_grace(pod)),
        MESSAGE_PATH: message_file,
        MESSAGE_POLICY: container.termination_message_policy or "File",
    }


def grace_of(annotations: Mapping[str, str]) -> int:
    """The same from the annotations, for a pod whose object is gone."""
    text = annotations.get(POD_GRACE, "")
    return int(text) if text.isdigit() else DEFAULT_GRACE
