"""The updater of `podfit vpa updater`, a client of any cluster."""

from collections.abc import Iterator

from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.controllers import ClientOf, Loop
from podfit.vpa.progress import Passes
from podfit.vpa.updater.updater import COMPONENT, Updater, UpdaterSettings


def updater_loops(
    client_of: ClientOf, settings: UpdaterSettings, clock: Clock, metrics: Metrics, passes: Passes
) -> Iterator[Loop]:
    client = client_of(Identity(COMPONENT))
    yield Updater(client, clock=clock, settings=settings, metrics=metrics, passed=passes.done).run()
