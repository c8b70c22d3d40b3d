"""The storage class `local` of `podfit up`: directories below its data directory, for the nodes in its process."""

import logging
from collections.abc import Collection
from pathlib import Path

from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.controllers.local_volumes import COMPONENT, LocalVolumes, keep_class
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.process.controllers import ClientOf, Loop
from podfit.process.identities import ADMIN, controller

log = logging.getLogger(__name__)


async def local_storage(client_of: ClientOf, clock: Clock, root: Path, nodes: Collection[str]) -> tuple[Loop, ...]:
    """The class is there from now on, unless the disk is full; volumes are made once the loops run."""
    try:
        await keep_class(client_of(ADMIN))
    except ApiError as error:
        log.warning("the storage class local cannot be made, the next start tries again error=%s", error)
    client = client_of(controller("persistent-volume-binder"))
    informers, recorder = Informers(client, clock), EventRecorder(client, component=COMPONENT, clock=clock)
    volumes = LocalVolumes(client, informers=informers, recorder=recorder, clock=clock, root=root, nodes=nodes)
    return recorder.run(), volumes.run(), informers.run()
