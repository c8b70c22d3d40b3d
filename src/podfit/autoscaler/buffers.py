"""CapacityBuffers, where the cluster has them: what they refer to is read, and told what came of it."""

import logging
from typing import Any

import msgspec

from podfit.api.core.v1.pods.templates import PodTemplate, PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.resource import dynamic, identify
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.scales import NoKind, Scales
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.capacity.buffers import ACTIVE, CapacityBuffer, Chunks, chunks

log = logging.getLogger(__name__)
GROUP = "autoscaling.x-k8s.io"
BUFFERS = dynamic(GROUP, "v1beta1", "capacitybuffers")
LASTING = 30.0
"""Seconds for which what was read is good."""
MOST_BUFFERS = 200
READY = "ReadyForProvisioning"
_UNREAD = (ApiError, ConnectionError, NoKind, ValueError)


class _Templated(msgspec.Struct, frozen=True):
    template: PodTemplateSpec = PodTemplateSpec()


class _Workload(msgspec.Struct, frozen=True):
    spec: _Templated = _Templated()


class Buffers:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._scales = Scales(client, clock)
        self._until = float("-inf")
        self._pods: tuple[Pod, ...] = ()

    async def pods(self) -> tuple[Pod, ...]:
        """What all of them stand for, as it was at most half a minute ago; nothing where there are none."""
        if self._until <= self._clock.monotonic():
            self._pods = await self._read()
            self._until = self._clock.monotonic() + LASTING
        return self._pods

    async def _read(self) -> tuple[Pod, ...]:
        try:
            documents = (await self._client.list(BUFFERS, limit=MOST_BUFFERS)).items
        except (ApiError, ConnectionError):
            return ()
        pods: list[Pod] = []
        for document in documents:
            answer = await self._chunks(document)
            await self._tell(document, answer)
            pods += answer.pods
        return tuple(pods)

    async def _chunks(self, document: dict[str, Any]) -> Chunks:
        try:
            buffer = codec.convert(document, CapacityBuffer)
            template, replicas = await self._referred(buffer)
        except _UNREAD as error:
            return Chunks(problem=f"what it refers to is not read: {error}"[:1024])
        return chunks(buffer, template, replicas)

    async def _referred(self, buffer: CapacityBuffer) -> tuple[PodTemplateSpec | None, int | None]:
        namespace, spec = buffer.metadata.namespace, buffer.spec
        if spec.pod_template_ref is not None:
            template = await self._client.get(PodTemplate, spec.pod_template_ref.name, namespace)
            return template.template, None
        if spec.scalable_ref is None:
            return None, None
        ref = spec.scalable_ref
        version = f"{ref.api_group}/v1" if ref.api_group else "v1"  # which one it is asks the server
        path = await self._scales.path(version, ref.kind, namespace, ref.name)
        scale = await self._scales.find(version, ref.kind, namespace, ref.name)
        workload = codec.decode(await self._client.request("GET", path.removesuffix("/scale")), _Workload)
        return workload.spec.template, scale.spec.replicas if scale is not None else None

    async def _tell(self, document: dict[str, Any], answer: Chunks) -> None:
        """In its status, when that is another one."""
        now, told = format_time(self._clock.now()), document.get("status") or {}
        ready = not answer.problem or bool(answer.pods)
        text = answer.problem or f"{len(answer.pods)} chunks count"
        wanted = {"replicas": len(answer.pods), "provisioningStrategy": ACTIVE}
        condition = {
            "type": READY,
            "status": "True" if ready else "False",
            "reason": "AttributesSetSuccessfully" if ready else "AttributesNotSet",
            "message": text,
        }
        none: dict[str, Any] = {}
        before = next((one for one in told.get("conditions") or () if one.get("type") == READY), none)
        same = all(before.get(key) == value for key, value in condition.items())
        if same and all(told.get(key) == value for key, value in wanted.items()):
            return
        namespace, name = identify(document)
        patch = {"status": {**wanted, "conditions": [{**condition, "lastTransitionTime": now}]}}
        try:
            await self._client.patch(BUFFERS, name, namespace, patch, content_type=MERGE_PATCH, subresource="status")
        except (ApiError, ConnectionError) as error:
            log.warning("a buffer's status is not written buffer=%s/%s error=%s", namespace, name, error)
