"""Images of one pod's containers: whether one is there, is pulled, or has to be waited for.

    Wanted ──▶ LookForImage ──▶ ImageLooked ──▶ Use   it is there, and its policy takes what is there
                                            ──▶ Pull ──▶ PullEnded ──▶ Use, Refuse
           ──▶ Refuse                    no image reference; never to be pulled, or pulled in vain a moment ago

what goes wrong       state of the container        event
ErrImagePull          the registry's text           Warning Failed, twice
ImagePullBackOff      Back-off pulling image …      Normal BackOff, Warning Failed
ErrImageNeverPull     not present …                 Warning ErrImageNeverPull, Warning Failed
InvalidImageName      Failed to apply …             Warning InspectFailed, Warning Failed
"""

from collections.abc import Mapping

import msgspec

from podfit.decide.lifecycle.backoff import RETRY_SECONDS, Backoff, tried
from podfit.decide.pod.image_names import problem, pull_policy

SOON = 1.0
"""Seconds until a pull that failed is looked at again, to say that it is put off."""


class PullFailure(msgspec.Struct, frozen=True):
    """The last one of an image: `at` is on the monotonic clock."""

    at: float
    message: str
    backoff: Backoff


class ImagePulls(msgspec.Struct, frozen=True):
    """What is remembered of a pod's images: those that could not be pulled."""

    failures: Mapping[str, PullFailure] = msgspec.field(default_factory=dict)


# ---------------------------------------------------------------- events


class Wanted(msgspec.Struct, frozen=True):
    """A container is to be created from it."""

    image: str


class ImageLooked(msgspec.Struct, frozen=True):
    """`policy` as in the container's spec; `present` is the image's id, empty when the node does not have it."""

    image: str
    policy: str
    present: str


class PullEnded(msgspec.Struct, frozen=True):
    """`error` is the registry's text; without one `pulled` is the image's id, `size` its bytes, `took` seconds."""

    image: str
    error: str = ""
    pulled: str = ""
    size: int = 0
    took: float = 0.0


# ---------------------------------------------------------------- effects


class Tell(msgspec.Struct, frozen=True):
    """An event about the container."""

    type: str
    reason: str
    message: str


class LookForImage(msgspec.Struct, frozen=True):
    """Ask the runtime whether it is there, then send `ImageLooked`."""

    image: str


class Pull(msgspec.Struct, frozen=True):
    """Pull it, then send `PullEnded`."""

    image: str


class Use(msgspec.Struct, frozen=True):
    """The id, or name, to create the container from."""

    image: str


class Refuse(msgspec.Struct, frozen=True):
    """The container waits: `reason` and `message` of its waiting state; `retry` in seconds."""

    reason: str
    message: str
    retry: float = RETRY_SECONDS


Event = Wanted | ImageLooked | PullEnded
Effect = Tell | LookForImage | Pull | Use | Refuse
Step = tuple[ImagePulls, tuple[Effect, ...]]


def step(pulls: ImagePulls, event: Event, *, now: float) -> Step:
    """The memory after the event, and what to do, in order; the last of it is no `Tell`."""
    match event:
        case Wanted(image=image):
            why = problem(image)
            refused = (Tell("Warning", "InspectFailed", why), *_refused("InvalidImageName", why))
            return pulls, refused if why else (LookForImage(image),)
        case ImageLooked():
            return pulls, _looked(pulls, event, now)
        case PullEnded(error=""):
            failures = {image: failure for image, failure in pulls.failures.items() if image != event.image}
            return ImagePulls(failures), (Tell("Normal", "Pulled", _pulled(event)), Use(event.pulled))
        case PullEnded(image=image, error=error):
            before = pulls.failures.get(image)
            failure = PullFailure(now, error, tried(before.backoff if before is not None else None, now))
            told = Tell("Warning", "Failed", f'Failed to pull image "{image}": {error}')
            waits = _refused("ErrImagePull", error, retry=SOON)
            return ImagePulls({**pulls.failures, image: failure}), (told, *waits)


def _looked(pulls: ImagePulls, event: ImageLooked, now: float) -> tuple[Effect, ...]:
    image, policy = event.image, pull_policy(event.image, event.policy)
    if event.present and policy != "Always":
        text = f'Container image "{image}" already present on machine and can be accessed by the pod'
        return Tell("Normal", "Pulled", text), Use(event.present)
    if policy == "Never":
        text = f'Container image "{image}" is not present with pull policy of Never'
        return Tell("Warning", "ErrImageNeverPull", text), *_refused("ErrImageNeverPull", text)
    failure = pulls.failures.get(image)
    wait = failure.backoff.remaining(failure.at, now) if failure is not None else 0.0
    if failure is not None and wait > 0:
        text = f'Back-off pulling image "{image}"'
        waits = _refused("ImagePullBackOff", f"{text}: ErrImagePull: {failure.message}", retry=wait)
        return Tell("Normal", "BackOff", text), *waits
    return Tell("Normal", "Pulling", f'Pulling image "{image}"'), Pull(image)


def _refused(reason: str, message: str, *, retry: float = RETRY_SECONDS) -> tuple[Tell, Refuse]:
    return Tell("Warning", "Failed", f"Error: {reason}"), Refuse(reason, message, retry)


def _pulled(event: PullEnded) -> str:
    took = f"{event.took:.3g}s"
    return (
        f'Successfully pulled image "{event.image}" in {took} ({took} including waiting). '
        f"Image size: {event.size} bytes."
    )
