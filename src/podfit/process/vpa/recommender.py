"""The recommender of `podfit vpa recommender`, a client of any cluster, and of `podfit up`. Loads NumPy, so it is
imported when it is needed.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.client.throttling import ThrottlingReader
from podfit.core.clock import Clock
from podfit.core.options import Option, Part
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import DEFAULT_RECOMMENDER
from podfit.decide.history.retention import Limits
from podfit.decide.machine import HISTORY
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.control.controllers import ClientOf, Loop
from podfit.process.control.options import ElectedOptions, SecurePort
from podfit.process.errors import MachineError, UsageError
from podfit.process.options import HistorySize
from podfit.process.vpa.history import HistoryOptions
from podfit.process.vpa.options import VpaConnection, check_scope, own_namespace
from podfit.vpa.certificates import self_made
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.recorder import Recorder
from podfit.vpa.history.own.streaming import own_history
from podfit.vpa.history.past_usage import ReadPast
from podfit.vpa.history.prometheus import History, HistorySettings, read_history
from podfit.vpa.history.promql import PromQL
from podfit.vpa.progress import Passes
from podfit.vpa.recommender.external_usage import ExternalMetrics
from podfit.vpa.recommender.pod_recommendations import PodRecommendationApi
from podfit.vpa.recommender.recommender import COMPONENT, Recommender
from podfit.vpa.recommender.serving import NAME, NAMESPACE, ApiOptions, RecommendationsServer
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.recommender.starting import PastSource

log = logging.getLogger(__name__)
LEASE = "vpa-recommender-lease"


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
    history_dir: Annotated[
        Path | None, Option("Keep what containers use in this directory; --storage=history starts from it.")
    ] = None
    history_size: HistorySize = 1024

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
        if self.history.own and self.history_dir is None:
            raise UsageError("--storage history: name the directory with --history-dir")
        if self.history_dir is not None and find_spec("duckdb") is None:
            raise MachineError("--history-dir: podfit was installed without the extra history", fix=(HISTORY,))
        external = self.external if self.use_external_metrics else None
        return replace(self.settings, external=external)

    def past(self, clock: Clock) -> PastSource | None:
        """Where history comes from, instead of checkpoints."""
        history, namespace = self.history, self.settings.namespace
        if history.own and self.history_dir is not None:
            return PastSource(read=own_history(self.history_dir, history.asked.length, namespace, _damaged))
        if not history.wanted:
            return None
        return PastSource(read=_of_server(history.server(clock), history.settings(namespace)))


def _damaged(file: str) -> None:
    log.warning("history left out %s", file)


def _of_server(server: PromQL, asked: HistorySettings) -> ReadPast:
    async def read(now: float) -> History:
        try:
            return await read_history(server, asked, now)
        finally:
            await server.close()

    return read


def recorder_in(directory: Path, size: int, clock: Clock, client: Client) -> Recorder:
    """A recorder of at most `size` MiB. `client` asks kubelets for throttling; where it may not, that is left out."""
    kubelets = ThrottlingReader(client)

    async def throttling(pods: Iterable[Pod]) -> Mapping[tuple[str, str, str], float]:
        return (await kubelets.read(pods)).share

    return Recorder(HistoryDirectory(directory), clock, limits=Limits(size=size << 20), throttling=throttling)


def _check(api: ApiOptions) -> None:
    """Raises UsageError."""
    if api.register_as and not api.served:
        raise UsageError("--register-api-as: say where it is served with --api-port")
    try:
        ip_address(api.register_as or "::")
    except ValueError:
        raise UsageError(f"--register-api-as {api.register_as}: it has to be an IP address") from None


def recommender_loops(
    client_of: ClientOf, options: RecommenderOptions, clock: Clock, metrics: Metrics, passes: Passes
) -> Iterator[Loop]:
    client, kept = client_of(Identity(COMPONENT)), options.history_dir
    recommender = Recommender(
        client,
        clock=clock,
        settings=options.recommender(),
        metrics=metrics,
        passed=passes.done,
        history=options.past(clock),
        recorder=recorder_in(kept, options.history_size, clock, client) if kept is not None else None,
    )
    yield recommender.run()
    api = options.api
    if api.served:
        yield _served(PodRecommendationApi(recommender.recommend_to), client_of(Identity(COMPONENT)), clock, api)


async def _served(api: PodRecommendationApi, client: Client, clock: Clock, options: ApiOptions) -> None:
    """`client` has a rate of its own, so that what is written for VPAs keeps nobody from an answer."""
    hosts = tuple(f"{NAME}.{namespace}.svc" for namespace in dict.fromkeys((own_namespace(), NAMESPACE)))
    with self_made(clock, hosts, "podfit-vpa-recommender") as certificates:
        await RecommendationsServer(api, client, clock, options, certificates).run()


def recommender_in_up(
    client: Client, clock: Clock, metrics: Metrics, gates: Gates, usages: PodUsages, recorder: Recorder | None
) -> Recommender:
    """The recommender. With a recorder it starts from what that has kept, unless checkpoints know more."""
    return Recommender(
        client,
        clock=clock,
        settings=RecommenderSettings(gates=gates),
        metrics=metrics,
        usages=usages,
        recorder=recorder,
        history=_kept_by(recorder) if recorder is not None else None,
    )


def _kept_by(recorder: Recorder) -> PastSource:
    read = own_history(recorder.root, HistorySettings().length, "", _damaged)
    return PastSource(read=read, began=HistoryDirectory(recorder.root).began)
