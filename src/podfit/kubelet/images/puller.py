"""The image puller: each image once at a time. When it is pulled is decided in `decide.lifecycle.pulls`."""

import asyncio
from collections.abc import Awaitable, Callable

from podfit.api.core.v1.pods.containers import Container
from podfit.core.clock import Clock
from podfit.decide.lifecycle import pulls
from podfit.decide.lifecycle.pulls import ImageLooked, ImagePulls, PullEnded, Refuse, Use, Wanted
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.labels import PodRef
from podfit.kubelet.runtime.protocol import Images
from podfit.net.supervisor import Supervisor

Tell = Callable[[str, str, str], None]
"""Type, reason and message of an event about the container."""
Find = Callable[[], Awaitable[tuple[Credential, ...]]]
"""What a registry may be shown."""


class ImageRefused(Exception):
    """The container has to wait for its image."""

    def __init__(self, refusal: Refuse) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Puller:
    def __init__(self, images: Images, *, clock: Clock) -> None:
        self._images = images
        self._clock = clock
        self._known: dict[str, ImagePulls] = {}
        self.supervisor = Supervisor("image pulls")
        self._pulls: dict[tuple[str, tuple[Credential, ...]], asyncio.Task[str | CRIError]] = {}

    async def ensure(self, pod: PodRef, container: Container, tell: Tell, find: Find) -> str:
        """The image's id, or name, to create the container from; `find` is called when it has to be pulled. Raises
        ImageRefused.
        """
        event: pulls.Event = Wanted(container.image)
        while True:
            known = self._known.get(pod.uid, ImagePulls())
            now_known, effects = pulls.step(known, event, now=self._clock.monotonic())
            if now_known is not known:
                self._known[pod.uid] = now_known
            for effect in effects:
                match effect:
                    case pulls.Tell(type_, reason, message):
                        tell(type_, reason, message)
                    case Use(image):
                        return image
                    case Refuse():
                        raise ImageRefused(effect)
                    case pulls.LookForImage(image):
                        present = await self._images.image_status(image)
                        event = ImageLooked(
                            image, container.image_pull_policy, present.id if present is not None else ""
                        )
                    case pulls.Pull(image):
                        event = await self._ended(image, find)

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    async def _ended(self, image: str, find: Find) -> PullEnded:
        began = self._clock.monotonic()
        try:
            image_id = await self._shared(image, await find())
        except CRIError as error:
            return PullEnded(image, str(error))
        took = self._clock.monotonic() - began
        found = await self._images.image_status(image_id)
        return PullEnded(image, pulled=image_id, size=found.size if found is not None else 0, took=took)

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
        """Pulls with each credential in turn, or as nobody where there is none. A failure is for those who still wait;
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
