"""Starts a container: has the image pulled, creates, starts, runs its postStart hook.

When it may be tried, what a failure makes of the container and when it is tried again, is decided in
`decide.lifecycle.machine`; the same of its image in `decide.lifecycle.pulls`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.probes import Lifecycle
from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.errors import ApiError
from podfit.decide.lifecycle.effects import StartContainer
from podfit.decide.lifecycle.events import StartStage
from podfit.decide.lifecycle.facts import ContainerStatus
from podfit.decide.pod.environment import TooLarge
from podfit.decide.pod.ephemeral_containers import field_path, target
from podfit.kubelet.actuation.actuator import Actuator
from podfit.kubelet.disk.files import delete_file
from podfit.kubelet.disk.safe_paths import Outside
from podfit.kubelet.images.image_volumes import ImageVolumes
from podfit.kubelet.images.pull_secrets import PullSecrets
from podfit.kubelet.images.puller import Puller, Tell
from podfit.kubelet.managers.shared_pool import SharedPool
from podfit.kubelet.pods.configs import confinement_problem, container_config, root_problem
from podfit.kubelet.pods.hooks import HookFailed, Hooks
from podfit.kubelet.pods.own_files import OwnFiles
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.runtime.log_rotation import delete_log
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.sources.downward import Unsupported
from podfit.kubelet.sources.environment import words
from podfit.kubelet.sources.lookup import Lookup, Missing
from podfit.kubelet.sources.services import ServiceVariables
from podfit.kubelet.volumes.manager import Paths, Volumes, asks_for_recursive

STOP_SIGNAL_IGNORED = "the runtime does not know lifecycle.stopSignal: the container is stopped with its image's signal"


class NotStarted(Exception):
    """The container could not be started; what `decide.lifecycle.events.StartFailed` tells of it."""

    def __init__(self, stage: StartStage, error: Exception, *, instance: str = "") -> None:
        super().__init__(str(error))
        self.stage, self.instance, self.outage = stage, instance, isinstance(error, Unavailable)


class StartedSandbox(msgspec.Struct, frozen=True):
    """Where a pod's containers go."""

    sandbox_id: str
    sandbox: SandboxConfig
    volumes: Paths


class Starter(msgspec.Struct, frozen=True):
    runtime: Runtime
    actuator: Actuator
    puller: Puller
    image_volumes: ImageVolumes
    lookup: Lookup
    pull_secrets: PullSecrets
    volumes: Volumes
    allocatable: ResourceList
    pool: SharedPool
    own_files: OwnFiles
    hooks: Hooks
    emit: Callable[[Pod, str, str, str, str], None]
    """Pod, type, reason, message, field path."""
    services: ServiceVariables

    async def start(self, start: StartContainer, place: StartedSandbox) -> None:
        """The pod is the allocated one. Raises ImageRefused, NotStarted."""
        pod, container = start.pod, start.container
        tell = self._event_writer(pod, container)
        try:
            find = partial(self.pull_secrets.credentials, pod, container.image, tell)
            image = await self.puller.ensure(labels.ref(pod), container, tell, find)
            show = partial(self.pull_secrets.credentials, pod, tell=tell)
            images = await self.image_volumes.pulled(pod, container, tell, show)
        except Unsupported as error:
            raise NotStarted(StartStage.CONFIGURE, error) from error
        if start.replaces:
            await self.runtime.remove_container(start.replaces)
        try:
            config = await self._configure(start, place, image=image, images=images)
        except (Missing, Unsupported, TooLarge, Outside, ApiError, OSError) as error:
            raise NotStarted(StartStage.CONFIGURE, error) from error
        await self._run(pod, container, config, place, tell)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self.puller.forget(uid)

    async def _run(
        self, pod: Pod, container: Container, config: ContainerConfig, place: StartedSandbox, tell: Tell
    ) -> None:
        try:
            await self.pool.make_way(pod.metadata.uid, container.name)
            await self.actuator.before_create(pod, container.name)
            container_id = await self.runtime.create_container(place.sandbox_id, config, place.sandbox)
        except CRIError as error:
            raise NotStarted(StartStage.CREATE, error) from error
        tell("Normal", "Created", "Container created")
        try:
            await self.runtime.start_container(container_id)
        except CRIError as error:
            raise NotStarted(StartStage.START, error) from error
        tell("Normal", "Started", "Container started")
        if container.lifecycle is not None:
            await self._began(pod, container, container_id, container.lifecycle, tell)

    async def _began(self, pod: Pod, container: Container, container_id: str, lifecycle: Lifecycle, tell: Tell) -> None:
        """The pod waits for a postStart hook."""
        if lifecycle.stop_signal and not (await self.runtime.container_status(container_id)).stop_signal:
            tell("Warning", "StopSignalIgnored", STOP_SIGNAL_IGNORED)
        if (hook := lifecycle.post_start) is None:
            return
        try:
            await self.hooks.run(pod, container, container_id, hook)
        except HookFailed as error:
            raise NotStarted(StartStage.POST_START, error, instance=container_id) from error

    async def _configure(
        self, start: StartContainer, place: StartedSandbox, *, image: str, images: Mapping[str, str]
    ) -> ContainerConfig:
        pod, container = start.pod, start.container
        problem = confinement_problem(pod, container)
        problem = problem or root_problem(pod, container, await self.runtime.image_status(image))
        if problem:
            raise Unsupported(problem)
        started_with = await words(
            pod,
            container,
            lookup=self.lookup,
            allocatable=self.allocatable,
            services=self.services.of(pod, static=is_static(pod)),
        )
        recursive = asks_for_recursive(container) and (await self.runtime.status()).recursive_read_only
        mounts = await self.volumes.container_mounts(
            pod, container, place.volumes, started_with.environment, images=images, recursive=recursive
        )
        await self.own_files.container_logs(Path(place.sandbox.log_directory), container.name)
        message_file = await self.own_files.message(pod, container)
        taken = {mount.container_path for mount in mounts}
        mounts += await self.own_files.mounts(pod, taken, shared=place.sandbox.host_network)
        return container_config(
            pod,
            container,
            image=image,
            attempt=start.attempt,
            words=started_with,
            mounts=mounts,
            message_file=message_file,
            resources=self.actuator.container(pod, container.name),
            profiles=self.volumes.root / "seccomp",
            target_id=target_id(start.running, target(pod, container.name)),
        )

    async def remove(self, container: ContainerStatus) -> None:
        """An ended instance, with its message and its log."""
        await self.runtime.remove_container(container.id)
        if message := container.annotations.get(labels.MESSAGE_PATH):
            await self.volumes.writer.run(Path(message), partial(delete_file, Path(message)))
        if container.log_path:
            path = Path(container.log_path)
            await self.volumes.writer.run(path, partial(delete_log, path))

    def _event_writer(self, pod: Pod, container: Container) -> Tell:
        path = field_path(pod, container.name)
        return lambda type_, reason, message: self.emit(pod, type_, reason, message, path)


def target_id(running: Mapping[str, str], name: str) -> str:
    """The id of the running container of that name, whose processes an ephemeral one is to see. Raises Unsupported."""
    if name and name not in running:
        raise Unsupported(f"unable to find target container {name}")
    return running[name] if name else ""
