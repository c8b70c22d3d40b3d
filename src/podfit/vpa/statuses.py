"""Writes a VPA's status only over the version that was read, as several writers share it."""

from collections.abc import Callable

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerStatus
from podfit.client.rest import JSON_PATCH, Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError

TRIES = 3
CHANGED = (409, 422)
"""What a patch is answered whose test fails."""


async def write_status(
    client: Client, vpa: VerticalPodAutoscaler, make: Callable[[VerticalPodAutoscaler], VerticalPodAutoscalerStatus]
) -> VerticalPodAutoscalerStatus | None:
    """What `make` gives for the VPA, and for a newer one when somebody else was quicker; None when it says the same.

    Raises ApiError or ConnectionError.
    """
    meta = vpa.metadata
    for attempt in range(1, TRIES + 1):
        new = make(vpa)
        if new == vpa.status:
            return None
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": vpa.metadata.resource_version},
            {"op": "add", "path": "/status", "value": new},
        ]
        try:
            await client.patch(VPAS, meta.name, meta.namespace, patch, content_type=JSON_PATCH, subresource="status")
        except ApiError as error:
            if error.code not in CHANGED or attempt == TRIES:
                raise
        else:
            return new
        vpa = await client.get(VPAS, meta.name, meta.namespace)
    raise AssertionError("the last try returns or raises")
