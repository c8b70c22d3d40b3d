"""Shrinks a pod so that a neighbour's resize has room (docs/room.md): tried first, then noted on the pod and done.

Every write names the version of the pod that the plan saw, so a plan that was made from old facts ends in a conflict.
"""

from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.resources import CPU, MEMORY, only
from podfit.decide.node.room.annotation import GAVE, noted
from podfit.decide.node.room.shrinkable import Shrink
from podfit.decide.node.room.texts import full_name

STALE = (404, 409)
"""The pod is not as it was when the plan was made."""
_BUSY = (408, 429)  # the server's answer is about itself, not about the shrink
_SERVER = 500


async def refusal(client: Client, change: Shrink) -> str:
    """Why the API server would not take it, asked without doing it; empty when it would. Raises ApiError where the
    answer is not about the shrink."""
    try:
        await _shrink(client, change, dry_run=True)
    except ApiError as error:
        if error.code in (*STALE, *_BUSY) or error.code >= _SERVER:
            raise
        return error.message or "it is refused"
    return ""


async def give(client: Client, change: Shrink, waiting: Pod) -> None:
    """Note what the pod had and for whom it gives, then shrink it. Without the shrink the note says nothing."""
    meta = change.pod.metadata
    patch = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {GAVE: noted(change, full_name(waiting))},
        }
    }
    marked = await client.patch(Pod, meta.name, meta.namespace, patch)
    await _shrink(client, replace(change, pod=marked))


async def _shrink(client: Client, change: Shrink, *, dry_run: bool = False) -> None:
    meta = change.pod.metadata
    containers = [{"name": name, "resources": _document(container)} for name, container in change.containers.items()]
    patch = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "spec": {"containers": containers},
    }
    await client.patch(Pod, meta.name, meta.namespace, patch, subresource="resize", dry_run=dry_run)


def _document(resources: ResourceRequirements) -> dict[str, dict[str, str]]:
    """What of it a resize may change."""
    sides = {"requests": resources.requests, "limits": resources.limits}
    return {
        side: {name: str(amount) for name, amount in only(amounts, (CPU, MEMORY)).items()}
        for side, amounts in sides.items()
    }
