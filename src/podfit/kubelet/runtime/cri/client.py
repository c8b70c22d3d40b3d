"""A container runtime over its CRI socket.

What a call is, and how it fails, is in `channel`. gRPC takes 80 ms to import, so this module is imported only where a
CRI socket is used.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from google.protobuf.message import Message

from podfit.decide.lifecycle.facts import ContainerStatus, LinuxResources, Sandbox, SandboxStatus, WindowsResources
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.runtime.archives import Importer
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.cri import from_cri, to_cri
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb
from podfit.kubelet.runtime.cri.channel import IMAGES, RUNTIME, Channel, DeadlineExceeded, M
from podfit.kubelet.runtime.errors import CRIError, NotFound, TimedOut, Unimplemented
from podfit.kubelet.runtime.types import (
    CgroupDriver,
    Container,
    ContainerEvent,
    ContainerStats,
    Executed,
    Image,
    RuntimeCondition,
    RuntimeStatus,
    SandboxStats,
    Streams,
    Version,
)

UPDATE_SECONDS = 30.0  # a process of the OCI runtime; asking twice is harmless
WORK_SECONDS = 120.0  # what makes and ends containers may wait for a busy disk, and is not begun twice
PULL_SECONDS = 600.0
EXEC_SLACK_SECONDS = 10.0  # for a runtime to end a command that took too long
LOOKS, LOOK_SECONDS = 1000, 0.01  # for an image that was just loaded


class CRIRuntime:
    """`endpoint` is the absolute path of a Unix socket."""

    def __init__(self, endpoint: Path, importer: Importer | None = None) -> None:
        self._channel = Channel(endpoint)
        self._call = self._channel.call
        self._importer = importer

    async def close(self) -> None:
        await self._channel.close()

    async def version(self) -> Version:
        answer = await self._call("Version", pb.VersionRequest(), pb.VersionResponse)
        return Version(
            runtime_name=answer.runtime_name,
            runtime_version=answer.runtime_version,
            api_version=answer.runtime_api_version,
        )

    async def status(self) -> RuntimeStatus:
        answer = await self._call("Status", pb.StatusRequest(), pb.StatusResponse)
        conditions = (
            RuntimeCondition(
                type=condition.type, status=condition.status, reason=condition.reason, message=condition.message
            )
            for condition in answer.status.conditions
        )
        default = (handler.features for handler in answer.runtime_handlers if not handler.name)
        recursive = any(features.recursive_read_only_mounts for features in default)
        return RuntimeStatus(conditions=tuple(conditions), recursive_read_only=recursive)

    async def cgroup_driver(self) -> CgroupDriver | None:
        try:
            answer = await self._call("RuntimeConfig", pb.RuntimeConfigRequest(), pb.RuntimeConfigResponse)
        except Unimplemented:
            return None
        return "systemd" if answer.linux.cgroup_driver == pb.SYSTEMD else "cgroupfs"

    async def events(self) -> AsyncIterator[ContainerEvent] | None:
        """Asks for the stream and waits for its first sign of life or refusal."""
        messages = await self._channel.stream("GetContainerEvents", pb.GetEventsRequest(), pb.ContainerEventResponse)
        return None if messages is None else (event async for message in messages if (event := from_cri.event(message)))

    async def run_sandbox(self, config: SandboxConfig, *, handler: str = "") -> str:
        request = pb.RunPodSandboxRequest(config=to_cri.sandbox_config(config), runtime_handler=handler)
        return (await self._work("RunPodSandbox", request, pb.RunPodSandboxResponse)).pod_sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self._gone_is_fine("StopPodSandbox", pb.StopPodSandboxRequest(pod_sandbox_id=sandbox_id))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self._gone_is_fine("RemovePodSandbox", pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id))

    async def list_sandboxes(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Sandbox, ...]:
        request = pb.ListPodSandboxRequest(filter=pb.PodSandboxFilter(label_selector=labelled))
        answer = await self._call("ListPodSandbox", request, pb.ListPodSandboxResponse)
        return tuple(from_cri.sandbox(sandbox) for sandbox in answer.items)

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        request = pb.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
        answer = await self._call("PodSandboxStatus", request, pb.PodSandboxStatusResponse)
        return from_cri.sandbox_status(answer.status)

    async def update_sandbox_resources(
        self, sandbox_id: str, *, resources: LinuxResources, overhead: LinuxResources | None = None
    ) -> None:
        request = pb.UpdatePodSandboxResourcesRequest(
            pod_sandbox_id=sandbox_id,
            resources=to_cri.resources(resources),
            overhead=to_cri.resources(overhead or LinuxResources()),
        )
        answer = pb.UpdatePodSandboxResourcesResponse
        await self._call("UpdatePodSandboxResources", request, answer, seconds=UPDATE_SECONDS)

    async def sandbox_stats(self, sandbox_id: str) -> SandboxStats:
        request = pb.PodSandboxStatsRequest(pod_sandbox_id=sandbox_id)
        return from_cri.sandbox_stats((await self._call("PodSandboxStats", request, pb.PodSandboxStatsResponse)).stats)

    async def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        request = pb.CreateContainerRequest(
            pod_sandbox_id=sandbox_id,
            config=to_cri.container_config(config, sandbox, config.security),
            sandbox_config=to_cri.sandbox_config(sandbox),
        )
        return (await self._work("CreateContainer", request, pb.CreateContainerResponse)).container_id

    async def start_container(self, container_id: str) -> None:
        request = pb.StartContainerRequest(container_id=container_id)
        await self._work("StartContainer", request, pb.StartContainerResponse)

    async def stop_container(self, container_id: str, *, grace_seconds: int) -> None:
        request = pb.StopContainerRequest(container_id=container_id, timeout=grace_seconds)
        await self._gone_is_fine("StopContainer", request, seconds=WORK_SECONDS + grace_seconds)

    async def remove_container(self, container_id: str) -> None:
        await self._gone_is_fine("RemoveContainer", pb.RemoveContainerRequest(container_id=container_id))

    async def list_containers(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Container, ...]:
        request = pb.ListContainersRequest(filter=pb.ContainerFilter(label_selector=labelled))
        answer = await self._call("ListContainers", request, pb.ListContainersResponse)
        return tuple(from_cri.container(container) for container in answer.containers)

    async def container_status(self, container_id: str) -> ContainerStatus:
        request = pb.ContainerStatusRequest(container_id=container_id)
        answer = await self._call("ContainerStatus", request, pb.ContainerStatusResponse)
        return from_cri.container_status(answer.status)

    async def update_container_resources(self, container_id: str, resources: LinuxResources | WindowsResources) -> None:
        request = to_cri.update_request(container_id, resources)
        answer = pb.UpdateContainerResourcesResponse
        await self._call("UpdateContainerResources", request, answer, seconds=UPDATE_SECONDS)

    async def reopen_container_log(self, container_id: str) -> None:
        request = pb.ReopenContainerLogRequest(container_id=container_id)
        await self._call("ReopenContainerLog", request, pb.ReopenContainerLogResponse)

    async def exec_sync(self, container_id: str, command: Sequence[str], *, timeout_seconds: float) -> Executed:
        """The runtime counts whole seconds and answers a little after them; so our own deadline comes later."""
        limit = math.ceil(timeout_seconds)
        request = pb.ExecSyncRequest(container_id=container_id, cmd=list(command), timeout=limit)
        waits = limit + EXEC_SLACK_SECONDS if limit else None
        try:
            answer = await self._channel.send(RUNTIME, "ExecSync", request, pb.ExecSyncResponse, seconds=waits)
        except DeadlineExceeded as error:
            raise TimedOut(str(error) or "the command timed out") from error
        return Executed(exit_code=answer.exit_code, stdout=answer.stdout, stderr=answer.stderr)

    async def exec_url(self, container_id: str, command: Sequence[str], streams: Streams) -> str:
        request = pb.ExecRequest(
            container_id=container_id,
            cmd=list(command),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not streams.tty,
            tty=streams.tty,
        )
        return (await self._call("Exec", request, pb.ExecResponse)).url

    async def attach_url(self, container_id: str, streams: Streams) -> str:
        request = pb.AttachRequest(
            container_id=container_id,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not streams.tty,
            tty=streams.tty,
        )
        return (await self._call("Attach", request, pb.AttachResponse)).url

    async def port_forward_url(self, sandbox_id: str) -> str:
        request = pb.PortForwardRequest(pod_sandbox_id=sandbox_id)
        return (await self._call("PortForward", request, pb.PortForwardResponse)).url

    async def container_stats(self, container_id: str) -> ContainerStats:
        request = pb.ContainerStatsRequest(container_id=container_id)
        return from_cri.container_stats((await self._call("ContainerStats", request, pb.ContainerStatsResponse)).stats)

    async def list_container_stats(self) -> tuple[ContainerStats, ...]:
        answer = await self._call("ListContainerStats", pb.ListContainerStatsRequest(), pb.ListContainerStatsResponse)
        return tuple(from_cri.container_stats(stats) for stats in answer.stats)

    async def list_images(self) -> tuple[Image, ...]:
        answer = await self._call("ListImages", pb.ListImagesRequest(), pb.ListImagesResponse, service=IMAGES)
        return tuple(from_cri.image(image) for image in answer.images)

    async def image_status(self, image: str) -> Image | None:
        request = pb.ImageStatusRequest(image=pb.ImageSpec(image=image))
        try:
            answer = await self._call("ImageStatus", request, pb.ImageStatusResponse, service=IMAGES)
        except NotFound:
            return None
        return from_cri.image(answer.image) if answer.image.id else None

    async def pull_image(self, image: str, credential: Credential | None = None) -> str:
        auth = None
        if credential is not None:
            auth = pb.AuthConfig(username=credential.username, password=credential.password)
        request = pb.PullImageRequest(image=pb.ImageSpec(image=image), auth=auth)
        answer = await self._call("PullImage", request, pb.PullImageResponse, service=IMAGES, seconds=PULL_SECONDS)
        return answer.image_ref

    async def remove_image(self, image: str) -> None:
        request = pb.RemoveImageRequest(image=pb.ImageSpec(image=image))
        await self._gone_is_fine("RemoveImage", request, service=IMAGES)

    async def image_root(self) -> str:
        answer = await self._call("ImageFsInfo", pb.ImageFsInfoRequest(), pb.ImageFsInfoResponse, service=IMAGES)
        return next((filesystem.fs_id.mountpoint for filesystem in answer.image_filesystems), "")

    async def import_archive(self, archive: Path) -> tuple[str, ...]:
        """CRI has no such call; the runtime's own tool does it, where we know that tool.

        CRI hears of the new image by an event, a moment later: a pod started before that would try to pull.
        """
        if self._importer is None:
            raise Unimplemented("this runtime is not podfit's own: load the image with its own tools")
        names = await self._importer.load(archive)
        for _ in range(LOOKS):
            if all([await self.image_status(name) for name in names]):
                return names
            await asyncio.sleep(LOOK_SECONDS)
        raise CRIError(f"{archive} was loaded, but the runtime does not show {', '.join(names)}")

    async def _gone_is_fine(
        self, name: str, request: Message, *, seconds: float | None = None, service: str = RUNTIME
    ) -> None:
        answer: type[Message] = getattr(pb, name + "Response")
        seconds = WORK_SECONDS if seconds is None else seconds
        try:
            await self._call(name, request, answer, seconds=seconds, service=service)
        except NotFound:
            return

    async def _work(self, name: str, request: Message, answer: type[M]) -> M:
        return await self._call(name, request, answer, seconds=WORK_SECONDS)
