"""The recommender of `podfit vpa recommender`, a client of any cluster, and of `podfit up`. Loads NumPy, so it is
imported when it is needed.
"""

from collections.abc import Iterator

from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.autoscaling.gates import Gates
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.control.controllers import ClientOf, Loop
from podfit.vpa.history.prometheus import History, HistorySettings, read_history
from podfit.vpa.history.promql import PromQL
from podfit.vpa.progress import Passes
from podfit.vpa.recommender.recommender import COMPONENT, Recommender, RecommenderSettings


def recommender_loops(
    client_of: ClientOf,
    settings: RecommenderSettings,
    clock: Clock,
    metrics: Metrics,
    passes: Passes,
    past: tuple[PromQL, HistorySettings] | None = None,
) -> Iterator[Loop]:
    """`past` is where history comes from, instead of checkpoints."""
    client, history = client_of(Identity(COMPONENT)), None
    if past is not None:
        server, asked = past

        async def history(now: float) -> History:
            try:
                return await read_history(server, asked, now)
            finally:
                await server.close()

    yield Recommender(
        client, clock=clock, settings=settings, metrics=metrics, passed=passes.done, history=history
    ).run()


def recommender_in_up(client: Client, clock: Clock, metrics: Metrics, gates: Gates, usages: PodUsages) -> Recommender:
    return Recommender(client, clock=clock, settings=RecommenderSettings(gates=gates), metrics=metrics, usages=usages)
