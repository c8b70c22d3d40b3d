"""The image puller: by the pull policy, each image once at a time.

what goes wrong       state of the container        event
ErrImagePull          the registry's text           Warning Failed, twice
ImagePullBackOff      Back-off pulling image …      Normal BackOff, Warning Failed
ErrImageNeverPull     not present …                 Warning ErrImageNeverPull, Warning Failed
InvalidImageName      Failed to apply …             Warning InspectFailed, Warning Failed
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.core.clock import Clock
from podfit.decide.lifecycle.backoff import CrashBackoff
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.image_names import problem, pull_policy
from podfit.kubelet.runtime.labels import PodRef
from podfit.kubelet.runtime.protocol import Images
from podfit.net.supervisor import Supervisor

Tell = Callable[[str, str, str], None]
"""Type, reason and message of an event about the container."""
Find = Callable[[], Awaitable[tuple[Credential, ...]]]
"""What a registry may be shown."""


class ImageError(Exception):
    """Why the container has to wait: `reason` and text of its waiting state; `retry` in seconds."""

    def __init__(self, reason: str, message: str, *, retry: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry = retry


class _Failure(msgspec.Struct, frozen=True):
    at: float
    message: str


class Puller:
    def __init__(self, images: Images, *, clock: Clock, retry: float) -> None:
        """`retry` is how soon a failure that no back-off governs is looked at again, in seconds."""
        self._images = images
        self._clock = clock
        self._retry = retry
        self._backoff = CrashBackoff()
        self._failures: dict[tuple[str, str], _Failure] = {}
        self.supervisor = Supervisor("image pulls")
        self._pulls: dict[tuple[str, tuple[Credential, ...]], asyncio.Task[str | CRIError]] = {}

    async def ensure(self, pod: PodRef, container: Container, tell: Tell, find: Find) -> str:
        """The image's id, or name, to create the container from; `find` is called when it has to be pulled. Raises
        ImageError.
        """
        image = container.image
        why = problem(image)
        if why:
            tell("Warning", "InspectFailed", why)
            raise self._refusal("InvalidImageName", why, tell)
        policy = pull_policy(image, container.image_pull_policy)
        present = await self._images.image_status(image)
        if present is not None and policy != "Always":
            text = f'Container image "{image}" already present on machine and can be accessed by the pod'
            tell("Normal", "Pulled", text)
            return present.id
        if policy == "Never":
            text = f'Container image "{image}" is not present with pull policy of Never'
            tell("Warning", "ErrImageNeverPull", text)
            raise self._refusal("ErrImageNeverPull", text, tell)
        return await self._pull(pod, image, tell, find)

    def forget(self, uid: str) -> None:
        self._backoff.forget(uid)
        for key in [key for key in self._failures if key[0] == uid]:
            del self._failures[key]

    async def _pull(self, pod: PodRef, image: str, tell: Tell, find: Find) -> str:
        key, began = (pod.uid, image), self._clock.monotonic()
        failure = self._failures.get(key)
        wait = self._backoff.remaining(key, failure.at, began) if failure is not None else 0.0
        if failure is not None and wait > 0:
            text = f'Back-off pulling image "{image}"'
            tell("Normal", "BackOff", text)
            tell("Warning", "Failed", "Error: ImagePullBackOff")
            raise ImageError("ImagePullBackOff", f"{text}: ErrImagePull: {failure.message}", retry=wait)
        tell("Normal", "Pulling", f'Pulling image "{image}"')
        try:
            image_id = await self._shared(image, await find())
        except CRIError as error:
            now = self._clock.monotonic()
            self._backoff.tried(key, now)
            self._failures[key] = _Failure(now, str(error))
            tell("Warning", "Failed", f'Failed to pull image "{image}": {error}')
            tell("Warning", "Failed", "Error: ErrImagePull")
            raise ImageError("ErrImagePull", str(error), retry=min(1.0, self._retry)) from error
        self._failures.pop(key, None)
        took = f"{self._clock.monotonic() - began:.3g}s"
        found = await self._images.image_status(image_id)
        size = found.size if found is not None else 0
        text = f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {size} bytes.'
        tell("Normal", "Pulled", text)
        return image_id

    async def _shared(self, image: str, known: tuple[Credential, ...]) -> str:
        """One pull of an image at a time with the same credentials, which outlives a pod that no longer wants it."""
        key = image, known
        task = self._pulls.get(key)
        if task is None:
            task = self.supervisor.begin(self._pulled(image, known), name=f"pull {image}")
            self._pulls[key] = task
            task.add_done_callback(lambda done: self._pulls.pop(key, None))
        answer = await asyncio.shield(task)
        if isinstance(answer, CRIError):
            raise answer
        return answer

    async def _pulled(self, image: str, known: tuple[Credential, ...]) -> str | CRIError:
        """With each credential in turn, or as nobody where there is none. A failure is for those who still wait;
        anything else that goes wrong is the node's.
        """
        failure = CRIError("no credential was tried")
        for credential in known or (None,):
            try:
                return await self._images.pull_image(image, credential)
            except CRIError as error:
                failure = error
        return failure

    async def close(self) -> None:
        await self.supervisor.stop()

    def _refusal(self, reason: str, text: str, tell: Tell) -> ImageError:
        tell("Warning", "Failed", f"Error: {reason}")
        return ImageError(reason, text, retry=self._retry)
