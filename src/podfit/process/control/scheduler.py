"""The scheduler of `podfit up` and `podfit scheduler`, a client of the API like any other."""

import socket
from collections.abc import Iterator

from podfit.client.event_series import SeriesRecorder
from podfit.client.informers import Informers
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.control.controllers import ClientOf, Loop
from podfit.process.identities import SCHEDULER
from podfit.process.options import SchedulerOptions
from podfit.scheduler.scheduler import Profile, Scheduler


def scheduler_loops(
    client_of: ClientOf,
    options: SchedulerOptions,
    gates: FeatureGates,
    clock: Clock,
    metrics: Metrics,
    *,
    informers: Informers | None = None,
) -> Iterator[Loop]:
    """`informers`: those that others of the process run."""
    client = client_of(Identity(SCHEDULER))
    if informers is None:
        informers = Informers(client, clock)
        yield informers.run()
    profiles = tuple(
        Profile(
            SeriesRecorder(client, component=profile.name, clock=clock, host=socket.gethostname()),
            profile.name,
            profile.weights,
            profile.fit,
            profile.spread,
        )
        for profile in options.profiles
    )
    for profile in profiles:
        yield profile.recorder.run()
    yield Scheduler(client, informers, profiles=profiles, clock=clock, gates=gates, metrics=metrics).run()
