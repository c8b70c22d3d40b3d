"""The scheduler of `podfit up` and `podfit scheduler`, a client of the API like any other."""

from collections.abc import Iterator

from podfit.client.events import EventRecorder
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.controllers import ClientOf, Loop
from podfit.process.identities import SCHEDULER
from podfit.process.options import SchedulerOptions
from podfit.scheduler.scheduler import Scheduler


def scheduler_loops(
    client_of: ClientOf, options: SchedulerOptions, gates: FeatureGates, clock: Clock, metrics: Metrics
) -> Iterator[Loop]:
    client = client_of(Identity(SCHEDULER))
    recorder = EventRecorder(client, component=options.name, clock=clock)
    yield recorder.run()
    yield Scheduler(
        client, recorder=recorder, clock=clock, gates=gates, metrics=metrics, name=options.name, weights=options.weights
    ).run()
