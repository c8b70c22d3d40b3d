"""The recommender of `podfit vpa recommender`, a client of any cluster. Loads NumPy, so its verb alone imports it."""

from collections.abc import Iterator

from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.controllers import ClientOf, Loop
from podfit.vpa.passes import Passes
from podfit.vpa.recommender.recommender import COMPONENT, Recommender, Settings


def recommender_loops(
    client_of: ClientOf, settings: Settings, clock: Clock, metrics: Metrics, passes: Passes
) -> Iterator[Loop]:
    client = client_of(Identity(COMPONENT))
    yield Recommender(client, clock=clock, settings=settings, metrics=metrics, passed=passes.done).run()
