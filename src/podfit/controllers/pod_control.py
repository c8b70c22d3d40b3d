"""Creates and deletes pods for controllers, with events about the controller."""

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.core.errors import ApiError

NORMAL, WARNING = "Normal", "Warning"
NOT_FOUND = 404
TERMINATING = "NamespaceTerminating"


def namespace_ends(error: ApiError) -> bool:
    """Whether it was refused because the namespace is being deleted."""
    return any(cause.get("reason") == TERMINATING for cause in error.details.get("causes", ()))


class PodControl:
    """`created` and `deleted` are the reasons of its events, "SuccessfulCreate" and the like, with upstream's words."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client, self._recorder = client, recorder

    async def create(self, owner: Object, pod: Pod) -> Pod:
        """Raises ApiError as the server refuses it; of a namespace that ends nothing is told."""
        try:
            made = await self._client.create(pod, owner.metadata.namespace)
        except ApiError as error:
            if not namespace_ends(error):
                self._recorder.event(owner, WARNING, "FailedCreate", f"Error creating: {error.message}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", f"Created pod: {made.metadata.name}")
        return made

    async def delete(self, owner: Object, pod: Pod) -> bool:
        """False when it had gone. Raises ApiError for another refusal."""
        name = pod.metadata.name
        try:
            await self._client.delete(Pod, name, pod.metadata.namespace)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return False
            self._recorder.event(owner, WARNING, "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {name}")
        return True
