"""The recommender of `podfit vpa recommender`, a client of any cluster, and of `podfit up`. Loads NumPy, so it is
imported when it is needed.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Annotated

from msgspec.structs import replace

from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.options import Option, Part
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import DEFAULT_RECOMMENDER
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.control.controllers import ClientOf, Loop
from podfit.process.control.options import ElectedOptions, SecurePort
from podfit.process.errors import UsageError
from podfit.process.vpa.history import HistoryOptions
from podfit.process.vpa.options import VpaConnection, check_scope, own_namespace
from podfit.vpa.certificates import self_made
from podfit.vpa.history.prometheus import History, HistorySettings, read_history
from podfit.vpa.history.promql import PromQL
from podfit.vpa.progress import Passes
from podfit.vpa.recommender.external_usage import ExternalMetrics
from podfit.vpa.recommender.pod_recommendations import PodRecommendationApi
from podfit.vpa.recommender.recommender import COMPONENT, Recommender, RecommenderSettings
from podfit.vpa.recommender.serving import NAME, NAMESPACE, ApiOptions, RecommendationsServer

LEASE = "vpa-recommender-lease"
NOT_SERVED = ApiOptions()


class RecommenderOptions(ElectedOptions, frozen=True, kw_only=True):
    """`podfit vpa recommender`: upstream's names and defaults."""

    connection: Annotated[VpaConnection, Part()] = VpaConnection()
    port: SecurePort = 8942
    settings: Annotated[RecommenderSettings, Part()] = RecommenderSettings()
    use_external_metrics: Annotated[
        bool, Option("Usage from external.metrics.k8s.io, by the two names below and --container-name-label.")
    ] = False
    external: Annotated[ExternalMetrics, Part()] = ExternalMetrics()
    history: Annotated[HistoryOptions, Part()] = HistoryOptions()
    api: Annotated[ApiOptions, Part()] = ApiOptions()

    @property
    def lease(self) -> str:
        name = self.settings.name
        return LEASE if name == DEFAULT_RECOMMENDER else f"{LEASE}-{name}"

    def recommender(self) -> RecommenderSettings:
        """Raises UsageError."""
        check_scope(self.settings.namespace, self.settings.ignored)
        self.history.check()
        _check(self.api)
        if self.settings.flags.fine_buckets and self.settings.upstream_compatible:
            raise UsageError("--fine-buckets and --upstream-compatible: give one of them")
        if self.use_external_metrics and not self.external.named:
            raise UsageError("--use-external-metrics: name one with --external-metrics-cpu-metric or -memory-metric")
        resolution = self.history.asked.resolution if self.history.wanted else self.settings.history_resolution
        external = self.external if self.use_external_metrics else None
        return replace(self.settings, external=external, history_resolution=resolution)

    def past(self, clock: Clock) -> tuple[PromQL, HistorySettings] | None:
        """Where history comes from, instead of checkpoints."""
        history = self.history
        return (history.server(clock), history.settings(self.settings.namespace)) if history.wanted else None


def _check(api: ApiOptions) -> None:
    """Raises UsageError."""
    if api.register_as and not api.served:
        raise UsageError("--register-api-as: say where it is served with --api-port")
    try:
        ip_address(api.register_as or "::")
    except ValueError:
        raise UsageError(f"--register-api-as {api.register_as}: it has to be an IP address") from None


def recommender_loops(
    client_of: ClientOf,
    settings: RecommenderSettings,
    clock: Clock,
    metrics: Metrics,
    passes: Passes,
    past: tuple[PromQL, HistorySettings] | None = None,
    *,
    api: ApiOptions = NOT_SERVED,
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

    recommender = Recommender(
        client, clock=clock, settings=settings, metrics=metrics, passed=passes.done, history=history
    )
    yield recommender.run()
    if api.served:
        yield _served(PodRecommendationApi(recommender.recommend_to), client_of(Identity(COMPONENT)), clock, api)


async def _served(api: PodRecommendationApi, client: Client, clock: Clock, options: ApiOptions) -> None:
    """`client` has a rate of its own, so that what is written for VPAs keeps nobody from an answer."""
    hosts = tuple(f"{NAME}.{namespace}.svc" for namespace in dict.fromkeys((own_namespace(), NAMESPACE)))
    with self_made(clock, hosts, "podfit-vpa-recommender") as certificates:
        await RecommendationsServer(api, client, clock, options, certificates).run()


def recommender_in_up(client: Client, clock: Clock, metrics: Metrics, gates: Gates, usages: PodUsages) -> Recommender:
    return Recommender(client, clock=clock, settings=RecommenderSettings(gates=gates), metrics=metrics, usages=usages)
