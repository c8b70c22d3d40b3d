"""Tells through the API that room is made in this cluster: a Lease that is renewed, so that it is not believed for long
after its writer has gone. `podfit plan` reads it.
"""

import logging
from typing import Literal

from podfit.api.coordination.v1.types import Lease, LeaseSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_micro

log = logging.getLogger(__name__)

NAME, NAMESPACE = "podfit-room", "kube-system"
MODE = "podfit.dev/make-room"
"""Annotation: "shrink" or "preempt"."""
SECONDS, RENEW = 40, 10.0
_NOT_FOUND = 404


async def keep_notice(client: Client, clock: Clock, mode: Literal["shrink", "preempt"]) -> None:
    """Renew it until cancelled."""
    while True:
        try:
            await _renew(client, clock, mode)
        except (ApiError, ConnectionError) as error:
            log.warning("cannot say that room is made error=%s", error)
        await clock.sleep(RENEW)


async def _renew(client: Client, clock: Clock, mode: str) -> None:
    now, annotations = format_micro(clock.now()), {MODE: mode}
    spec = {"renewTime": now, "holderIdentity": NAME, "leaseDurationSeconds": SECONDS}
    try:
        await client.patch(Lease, NAME, NAMESPACE, {"metadata": {"annotations": annotations}, "spec": spec})
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        meta = ObjectMeta(name=NAME, namespace=NAMESPACE, annotations=annotations)
        made = LeaseSpec(holder_identity=NAME, lease_duration_seconds=SECONDS, renew_time=now)
        await client.create(Lease(metadata=meta, spec=made))
