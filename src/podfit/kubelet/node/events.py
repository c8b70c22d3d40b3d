"""Events that the kubelet records: about its pods, and about its node."""

import logging

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.references import ObjectReference
from podfit.client.events import After, EventRecorder, reference
from podfit.client.rest import Client
from podfit.core.clock import Clock

log = logging.getLogger(__name__)


class KubeletEvents:
    """`run` delivers until cancelled; before it does, it waits for what `after` waits for."""

    def __init__(self, client: Client, node: str, *, clock: Clock, after: After) -> None:
        self._recorder = EventRecorder(client, component="kubelet", clock=clock, host=node, after=after)
        self._node = ObjectReference(kind="Node", api_version="v1", name=node, uid=node)

    async def run(self) -> None:
        await self._recorder.run()

    def pod(self, pod: Pod, type_: str, reason: str, message: str, field_path: str = "") -> None:
        log.debug("event pod=%s/%s reason=%s", pod.metadata.namespace, pod.metadata.name, reason)
        self._recorder.event(reference(pod, field_path=field_path), type_, reason, message)

    def node(self, type_: str, reason: str, message: str) -> None:
        """Upstream's kubelet, too, puts the node's name in place of its uid there."""
        self._recorder.event(self._node, type_, reason, message)
