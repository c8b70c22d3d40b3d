"""Controllers, scheduler and autoscalers inside of `podfit up`."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from msgspec.structs import replace

from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.controllers.horizontal import ACCOUNT as HORIZONTAL
from podfit.core.clock import Clock
from podfit.decide.workload.nodes.ipam import NodeRanges
from podfit.net.certificates import hosts_of
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Identity
from podfit.process.control.apiserver import ApiServerComponent, LocalServices
from podfit.process.control.component_health import CONTROLLERS, SCHEDULER, OwnComponents
from podfit.process.control.controllers import controller_loops, default_account, informers_of, local_storage
from podfit.process.control.metrics_server import local_metrics
from podfit.process.control.scheduler import scheduler_loops
from podfit.process.identities import ADMIN, controller
from podfit.process.options import UpOptions

READY_SECONDS = 60.0


class ControlInUp:
    """`client` gives one of an identity; `need` returns when modules can be imported without taking time."""

    def __init__(
        self,
        options: UpOptions,
        api: ApiServerComponent,
        services: LocalServices,
        client: Callable[[Identity], Client],
        *,
        clock: Clock,
        need: Callable[..., Awaitable[None]],
    ) -> None:
        self._options, self._api, self._services, self._client = options, api, services, client
        self._clock, self._need = clock, need

    async def start(
        self,
        running: Supervisor,
        components: OwnComponents,
        nodes: Collection[str],
        ranges: NodeRanges | None,
        *,
        keeps_history: bool,
    ) -> None:
        """Returns when they have made what a first pod needs. `ranges` are those of nodes; without them nodes get
        none."""
        options, api, clock = self._options, self._api, self._clock
        controllers = replace(
            options.controllers,
            allocate_node_cidrs=options.controllers.allocate_node_cidrs and ranges is not None,
            cluster_cidr=str(ranges.cluster) if ranges is not None else options.controllers.cluster_cidr,
        )
        usages = PodUsages(self._client(controller(HORIZONTAL)), clock)
        informers = informers_of(self._client, clock)
        control = controller_loops(
            self._client,
            controllers,
            options.gates,
            clock,
            authority=api.authority,
            served=self._served,
            metrics=api.metrics,
            usages=usages,
            informers=informers,
        )
        scheduling = scheduler_loops(
            self._client, options.scheduler, options.gates, clock, api.metrics, informers=informers
        )
        components.runs(CONTROLLERS, map(running.run, control))
        components.runs(SCHEDULER, map(running.run, scheduling))
        for loop in await local_storage(self._client, clock, options.data.volumes, nodes):
            running.run(loop)
        if options.metrics_server:
            metrics = await local_metrics(api, self._services, self._client, clock, len(nodes), informers)
            running.run(metrics, name="metrics server")
        else:
            await api.ask_backends()
        if options.vpa:
            await self._autoscale(running, usages, keeps_history=keeps_history)
        if options.node_groups is not None:
            await self._scale_nodes(running, options.node_groups)
        async with asyncio.timeout(READY_SECONDS):
            await default_account(self._client(ADMIN))

    async def _served(self) -> frozenset[str]:
        given = self._options.api.tls
        return self._api.authority.served() | frozenset(hosts_of(given.certificate_file) if given else ())

    async def _autoscale(self, running: Supervisor, usages: PodUsages, *, keeps_history: bool) -> None:
        """Returns when VPAs can be made. What VPAs need is loaded only where they are wanted."""
        await self._need("podfit.process.vpa.in_up")
        from podfit.process.vpa.in_up import HistoryKept, VpaInUp

        options = self._options
        kept = HistoryKept(options.data.history, options.history_size) if keeps_history else None
        vpa = VpaInUp(self._api, self._services, self._clock, self._need, usages, kept)
        await vpa.install()
        running.run(vpa.run(), name="vertical pod autoscaler")

    async def _scale_nodes(self, running: Supervisor, file: Path) -> None:
        """Returns when headroom can be asked for; nodes come and go from then on. Loaded where it is wanted."""
        await self._need("podfit.process.autoscaler.loops")
        from podfit.process.autoscaler.loops import ACCOUNT, autoscaler_in_up, install_in_up
        from podfit.process.autoscaler.options import groups_of

        groups = await asyncio.to_thread(groups_of, file)
        await install_in_up(self._client(ADMIN))
        client, metrics = self._client(controller(ACCOUNT)), self._api.metrics
        loop = autoscaler_in_up(client, groups, self._options.autoscaler, self._clock, metrics)
        running.run(loop, name="cluster autoscaler")
