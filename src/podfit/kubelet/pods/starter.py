"""Starts a container: pulls the image, creates, starts; errors in upstream's words.

step       waiting reason on failure
image      ErrImagePull, ImagePullBackOff, ErrImageNeverPull, InvalidImageName
configure  CreateContainerConfigError    a missing ConfigMap or key, a forbidden user, a bad sub-path
create     CreateContainerError
start      RunContainerError             such as a command that does not exist
postStart  PostStartHookError            its hook failed, and it was ended
before all CrashLoopBackOff              it keeps ending
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
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.pod.environment import TooLarge
from podfit.decide.pod.ephemeral_containers import field_path, target
from podfit.decide.pod.lifecycle.actions import Kill
from podfit.decide.pod.lifecycle.backoff import OUTAGE_SECONDS, RETRY_SECONDS, CrashBackoff, Key, size_hash
from podfit.decide.pod.lifecycle.container_statuses import POST_START_ERROR
from podfit.decide.pod.lifecycle.facts import ContainerState, ContainerStatus, PodFacts
from podfit.kubelet.actuation.actuator import Actuator
from podfit.kubelet.disk.files import delete_file
from podfit.kubelet.disk.safe_paths import Outside
from podfit.kubelet.images.image_volumes import ImageVolumes
from podfit.kubelet.images.pull_secrets import PullSecrets
from podfit.kubelet.images.puller import ImageError, Puller, Tell
from podfit.kubelet.managers.shared_pool import SharedPool
from podfit.kubelet.pods.configs import confinement_problem, container_config, root_problem
from podfit.kubelet.pods.hooks import HookFailed, Hooks
from podfit.kubelet.pods.killer import Killer
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
    """The container has to wait: `reason` and text of its waiting state; looked at again after `retry` seconds."""

    def __init__(self, reason: str, message: str, *, retry: float = RETRY_SECONDS) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry = retry


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
    clock: Clock
    backoff: CrashBackoff
    pool: SharedPool
    own_files: OwnFiles
    hooks: Hooks
    killer: Killer
    emit: Callable[[Pod, str, str, str, str], None]
    """Pod, type, reason, message, field path."""
    services: ServiceVariables
    failures: dict[tuple[str, str], tuple[NotStarted, float]] = msgspec.field(default_factory=dict)
    """Why a container (pod's uid, name) could not be started, and when it may be tried again."""

    async def start(
        self, pod: Pod, container: Container, place: StartedSandbox, facts: PodFacts, *, replaced: bool
    ) -> None:
        """`pod` is the allocated one. `replaced`: we stopped the last instance ourselves, so it need not wait.

        Raises NotStarted.
        """
        tell = self._event_writer(pod, container)
        last = facts.last(container.name)
        ended = facts.last_ended(container.name)
        if ended is not None and not replaced:
            self._wait_for_backoff(pod, container, ended, tell)
        if last is not None and last.state is ContainerState.CREATED:
            self._wait_to_try_again((pod.metadata.uid, container.name))
        try:
            find = partial(self.pull_secrets.credentials, pod, container.image, tell)
            image = await self.puller.ensure(labels.ref(pod), container, tell, find)
            show = partial(self.pull_secrets.credentials, pod, tell=tell)
            images = await self.image_volumes.pulled(pod, container, tell, show)
        except ImageError as error:
            raise NotStarted(error.reason, str(error), retry=error.retry) from error
        attempt = await self._attempt(pod, container, last)
        try:
            config = await self._configure(pod, container, place, facts, image=image, images=images, attempt=attempt)
        except (Missing, Unsupported, TooLarge, Outside, ApiError, OSError) as error:
            raise self._failure("CreateContainerConfigError", error, tell) from error
        await self._run(pod, container, config, place, tell)
        await self.prune(container.name, facts, keep=1)

    def _wait_to_try_again(self, key: tuple[str, str]) -> None:
        """An instance that could not be started is not replaced before its time: seeing it go would wake the worker."""
        failure, until = self.failures.get(key, (None, 0.0))
        left = until - self.clock.monotonic()
        if failure is not None and left > 0:
            raise NotStarted(failure.reason, str(failure), retry=left)
        self.failures.pop(key, None)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        for key in [key for key in self.failures if key[0] == uid]:
            del self.failures[key]
        self.backoff.forget(uid)
        self.puller.forget(uid)

    async def _run(
        self, pod: Pod, container: Container, config: ContainerConfig, place: StartedSandbox, tell: Tell
    ) -> None:
        try:
            await self.pool.make_way(pod.metadata.uid, container.name)
            await self.actuator.before_create(pod, container.name)
            container_id = await self.runtime.create_container(place.sandbox_id, config, place.sandbox)
        except CRIError as error:
            raise self._to_be_tried_again(pod, container, self._failure("CreateContainerError", error, tell)) from error
        tell("Normal", "Created", "Container created")
        try:
            await self.runtime.start_container(container_id)
        except CRIError as error:
            raise self._to_be_tried_again(pod, container, self._failure("RunContainerError", error, tell)) from error
        tell("Normal", "Started", "Container started")
        if container.lifecycle is not None:
            await self._began(pod, container, container_id, container.lifecycle, tell)

    async def _began(self, pod: Pod, container: Container, container_id: str, lifecycle: Lifecycle, tell: Tell) -> None:
        """The pod waits for a postStart hook. A container whose hook fails is ended, and comes again as its policy
        says.
        """
        if lifecycle.stop_signal and not (await self.runtime.container_status(container_id)).stop_signal:
            tell("Warning", "StopSignalIgnored", STOP_SIGNAL_IGNORED)
        if (hook := lifecycle.post_start) is None:
            return
        try:
            await self.hooks.run(pod, container, container_id, hook)
        except HookFailed as error:
            tell("Warning", "FailedPostStartHook", "PostStartHook failed")
            status = await self.runtime.container_status(container_id)
            await self.killer.stop_for_restart(pod, [Kill(status, "FailedPostStartHook")])
            raise NotStarted(POST_START_ERROR, str(error), retry=OUTAGE_SECONDS) from error

    async def _configure(
        self,
        pod: Pod,
        container: Container,
        place: StartedSandbox,
        facts: PodFacts,
        *,
        image: str,
        images: Mapping[str, str],
        attempt: int,
    ) -> ContainerConfig:
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
        mounts += await self.own_files.mounts(pod, {mount.container_path for mount in mounts})
        return container_config(
            pod,
            container,
            image=image,
            attempt=attempt,
            words=started_with,
            mounts=mounts,
            message_file=message_file,
            resources=self.actuator.container(pod, container.name),
            profiles=self.volumes.root / "seccomp",
            target_id=target_id(facts, target(pod, container.name)),
        )

    async def _attempt(self, pod: Pod, container: Container, last: ContainerStatus | None) -> int:
        """The restart count of the instance to be made. One that was created and never started does not count."""
        if last is not None and last.state is ContainerState.CREATED:
            await self.runtime.remove_container(last.id)
            return last.attempt
        if last is not None:
            return last.attempt + 1
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            if status.name == container.name and status.container_id:
                return status.restart_count + 1
        return 0

    def _wait_for_backoff(self, pod: Pod, container: Container, last: ContainerStatus, tell: Tell) -> None:
        key: Key = (pod.metadata.uid, container.name)
        form = size_hash(container)
        now = self.clock.now().timestamp()
        wait = self.backoff.remaining(key, last.finished_at / 1e9, now, form)
        if wait > 0:
            tell(
                "Warning", "BackOff", f"Back-off restarting failed container {container.name} in pod {labels.ref(pod)}"
            )
            text = f"back-off {duration(self.backoff.delay(key))} restarting failed container={container.name}"
            raise NotStarted("CrashLoopBackOff", f"{text} pod={labels.ref(pod)}", retry=wait)
        self.backoff.tried(key, now, form)

    async def prune(self, name: str, facts: PodFacts, *, keep: int = 2) -> None:
        """Keep the last ended instance of a container, for `kubectl logs --previous`, and no older one.

        `keep` is one less while the facts do not have the instance yet that was just made.
        """
        for container in [container for container in facts.containers if container.name == name][keep:]:
            if container.state is not ContainerState.RUNNING:
                await self.runtime.remove_container(container.id)
                if message := container.annotations.get(labels.MESSAGE_PATH):
                    await self.volumes.writer.run(Path(message), partial(delete_file, Path(message)))
                if container.log_path:
                    path = Path(container.log_path)
                    await self.volumes.writer.run(path, partial(delete_log, path))

    def _event_writer(self, pod: Pod, container: Container) -> Tell:
        path = field_path(pod, container.name)
        return lambda type_, reason, message: self.emit(pod, type_, reason, message, path)

    def _to_be_tried_again(self, pod: Pod, container: Container, failure: NotStarted) -> NotStarted:
        self.failures[pod.metadata.uid, container.name] = failure, self.clock.monotonic() + failure.retry
        return failure

    def _failure(self, reason: str, error: Exception, tell: Tell) -> NotStarted:
        tell("Warning", "Failed", f"Error: {error}")
        return NotStarted(reason, str(error), retry=OUTAGE_SECONDS if isinstance(error, Unavailable) else RETRY_SECONDS)


def target_id(facts: PodFacts, name: str) -> str:
    """The id of the running container of that name, whose processes an ephemeral one is to see. Raises Unsupported."""
    if not name:
        return ""
    found = next((container.id for container in facts.running if container.name == name), "")
    if not found:
        raise Unsupported(f"unable to find target container {name}")
    return found


def duration(seconds: float) -> str:
    """As Go writes whole seconds: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
