"""The status of a static pod goes to its mirror, which comes and goes without the pod taking notice."""

from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.kubelet.status.writer import StatusWriter


class MirrorWriter(StatusWriter):
    """Writes nothing while there is no mirror; a new one is told everything."""

    def __init__(self, client: Client, pod: Pod, *, clock: Clock) -> None:
        super().__init__(client, pod, clock=clock)
        self._exists = False

    def shown(self, mirror: Pod | None) -> None:
        """What the API has of the pod now. The first mirror tells what was known of the pod before this kubelet."""
        self._exists = mirror is not None
        if mirror is None:
            self._written.set()
        elif mirror.metadata.uid != self._meta.uid:
            self._meta, self._known, self._version = mirror.metadata, mirror.status, 0
            self.seen(mirror)
        else:
            self.seen(mirror)

    def _compare(self) -> None:
        if self._exists:
            super()._compare()

    def _forgotten(self) -> None:
        self.shown(None)
