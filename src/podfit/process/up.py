"""`podfit up`: API server, controllers, scheduler and nodes in one process, and nothing else.

Nothing in a component knows that it is not alone in its process; they call the API server's handler instead of a
socket. containerd is launched first, because it takes longer than anything of ours and needs nothing of ours. What the
API server does not need to answer is imported when it answers (`DeferredImports`): kubelet, gRPC, controllers and the
scheduler.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podfit import __version__
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.clock import Clock
from podfit.core.randomness import Random
from podfit.core.times import format_time
from podfit.decide.dns.own import NUMBER
from podfit.decide.machine import HISTORY, keeps_history, lacking, server_checks
from podfit.decide.node.options import KubeletOptions, PodNetworkKind
from podfit.net.deferred_imports import DeferredImports
from podfit.net.supervisor import Supervisor
from podfit.net.system import SystemClock, SystemRandom
from podfit.net.wire import Handler, Identity
from podfit.process.access import Published, keep, publish, take_back, user_file
from podfit.process.control.apiserver import ApiServerComponent, LocalServices, place_of_store
from podfit.process.control.component_health import OwnComponents
from podfit.process.data.running_process import record_this_process
from podfit.process.errors import MachineError
from podfit.process.foreground import Announce
from podfit.process.identities import ADMIN, MANAGER, agent
from podfit.process.listening import port_of
from podfit.process.node.choice import (
    NodeChoice,
    choose_node,
    looks_at_rules,
    network_note,
    node_names,
    prepared_runtime,
)
from podfit.process.node.machine import look
from podfit.process.options import NodeKind, UpOptions, makes_network
from podfit.store.protocol import Store, StoreError

if TYPE_CHECKING:
    from podfit.decide.workload.nodes.ipam import NodeRanges
    from podfit.process.node.backend import NodeBackend
    from podfit.process.node.cluster_node import ClusterNode
    from podfit.process.node.player import NodePlayer
    from podfit.process.node.runtime import PreparedRuntime


READY_SECONDS = 60.0
CONTROL = (
    "podfit.process.control.controllers",
    "podfit.process.control.scheduler",
    "podfit.process.control.metrics_server",
    "podfit.process.control_in_up",
)


class Cluster:
    """`start` makes one that runs, `stop` ends it; `failure` returns only if a part of it breaks."""

    def __init__(self, options: UpOptions, clock: Clock, store: Callable[[], Store] | None, random: Random) -> None:
        self.options = options
        self.nodes: tuple[ClusterNode, ...] = ()
        self._began, self._ready = format_time(clock.now()), False
        self._claimed = False
        self.access = Published(user_file(options.api.kubeconfig))
        self._clock, self._random = clock, random
        self._player: NodePlayer | None = None
        self._closing = AsyncExitStack()
        self._supervisor = Supervisor("cluster")
        self._services = LocalServices()
        self._components = OwnComponents()
        self._api = ApiServerComponent(
            options.api,
            clock,
            verb="up",
            random=random,
            loopback=True,
            store=store,
            local_node=self._kubelet,
            controlled_resources=options.controllers.controlled_resources(),
            own_nodes=options.node is not NodeKind.NONE,
            services=self._services.find,
            components=self._components.asked,
        )
        self._closing.push_async_callback(self._api.stop)
        self._backends: asyncio.Task[list[NodeBackend]] | None = None
        self._imports = DeferredImports()
        self._closing.callback(self._imports.close)
        self._serving = asyncio.Event()
        self._keeps_history = False

    @classmethod
    async def start(
        cls,
        options: UpOptions,
        *,
        announce: Announce,
        clock: Clock | None = None,
        store: Callable[[], Store] | None = None,
        random: Random | None = None,
    ) -> "Cluster":
        """Returns when the API serves and every node is Ready. Raises ClusterError, and then nothing runs. By default
        time and chance are the machine's, and the store is a file of the data directory."""
        cluster = cls(options, clock or SystemClock(), store, random or SystemRandom())
        try:
            await cluster._start(announce)
        except BaseException as error:
            await cluster.stop(pods=False, runtime=True)
            await cluster._forget_network()
            if isinstance(error, StoreError):
                raise MachineError(f"the cluster cannot start: {error}") from error
            raise
        return cluster

    async def _start(self, announce: Announce) -> None:
        options, clock = self.options, self._clock
        began = clock.monotonic()
        if options.kubelet != KubeletOptions():
            from podfit.process.node.kubelet_config import check

            check(options.kubelet)
        facts = look(options.data, clock.now(), versions=False, rules=looks_at_rules(options))
        choice = choose_node(options, facts)
        options = replace(options, kubelet=replace(options.kubelet, pod_network=choice.pod_network))
        self.options = options
        self._api.prepare()
        ranges = self._pod_range(choice)
        self._record(ready=False)
        announce(f"podfit {__version__}: Kubernetes API 1.36")
        for lack in lacking(server_checks(facts)):
            announce(f"  note      {lack.found}")
        if note := network_note(choice):
            announce(f"  note      {note}")
        self._keeps_history = options.vpa and options.history and keeps_history(facts)
        if options.vpa and options.history and not self._keeps_history:
            announce(f"  note      what containers use is not kept: {HISTORY}")
        prepared = prepared_runtime(choice, options, clock)
        hold = self._supervisor.hold
        self._backends = hold(self._made(choice, prepared), name="runtime of the nodes")
        access = await self._api.start()
        self._supervisor.watch(self._api.supervisor)
        keep(options.data, access)
        announce(f"  api       {self.server}, ready in {1000 * (clock.monotonic() - began):.0f} ms")
        if not options.api.listening.local:
            listens = ", ".join(options.api.listening.addresses)
            announce(f"            for others {self._api.advertised}, listening on {listens}")
        self._serving.set()
        await asyncio.sleep(0)  # the nodes' imports come first
        loops = hold(self._control(node_names(choice, options.nodes), ranges), name="start of the controllers")
        published = hold(asyncio.to_thread(publish, access, options.data, options.api.kubeconfig), name="kubeconfig")
        try:
            await self._nodes(choice, await asyncio.shield(self._backends), announce)
            await loops
            await self._serve_network(ranges, announce, rules=not choice.lacks)
            self._play(node_names(choice, options.nodes), announce)
        finally:
            self.access = await published  # also when the start fails: it has to be taken back
        announce(f"  store     {place_of_store(options.api)}")
        announce(f"  kubectl   {self.access}")
        announce(f"  ready     in {clock.monotonic() - began:.2f} s")
        self._record(ready=True)

    def _pod_range(self, choice: NodeChoice) -> "NodeRanges | None":
        """Where this cluster's pods are; None where all are on the network of their node. The API is served there."""
        options = self.options
        routed = options.kubelet.pod_network is PodNetworkKind.POD and makes_network(options)
        if choice.kind is not NodeKind.REAL or not routed:
            return None
        from podfit.process.node.pod_network import claim_range, first_gateway

        self._claimed = True
        ranges = claim_range(options)
        if choice.lacks:  # no rules would keep others away from the API server there, and no name would be reached
            return ranges
        self._api.reach_pods(first_gateway(ranges))
        services = options.api.ranges
        if not options.kubelet.cluster_dns and services.family == "IPv4" and services.size > NUMBER:
            kubelet = replace(options.kubelet, cluster_dns=(services.address(NUMBER),))
            self.options = replace(options, kubelet=kubelet)
        return ranges

    async def _forget_network(self) -> None:
        """The start has failed: where nothing runs on the directory, nothing has an address or a rule either."""
        if self._claimed:
            from podfit.process.node.leftovers import forget_network

            await forget_network(self.options.data)

    @property
    def server(self) -> str:
        """Where this machine reaches the API."""
        return self._api.server

    async def _control(self, nodes: Collection[str], ranges: "NodeRanges | None") -> None:
        """Controllers, scheduler and autoscalers; returns when they have made what a first pod needs."""
        await self._imports.need(*CONTROL)
        from podfit.process.control_in_up import ControlInUp

        control = ControlInUp(
            self.options, self._api, self._services, self._client, clock=self._clock, need=self._imports.need
        )
        await control.start(self._supervisor, self._components, nodes, ranges, keeps_history=self._keeps_history)

    async def _made(self, choice: NodeChoice, prepared: "PreparedRuntime | None") -> "list[NodeBackend]":
        """What the kubelets drive, once the API serves."""
        await self._serving.wait()
        grpc = ("podfit.kubelet.runtime.cri.client",) if choice.kind is NodeKind.REAL else ()
        await self._imports.need("podfit.apiserver.resources", "podfit.process.node.cluster_node", *grpc)
        from podfit.kubelet.runtime.simulated.addresses import SimulatedAddresses
        from podfit.process.node.backend import real_backend, simulated_backend

        if prepared is not None:
            return [await real_backend(prepared, self.options, self._clock)]
        options = self.options
        ends, passing = options.programs_end, options.passing_seconds
        routed = options.kubelet.pod_network is PodNetworkKind.POD
        return [
            simulated_backend(
                self._clock,
                programs_end=ends,
                passing_seconds=passing,
                addresses=SimulatedAddresses(number) if routed else None,
            )
            for number, _ in enumerate(node_names(choice, options.nodes))
        ]

    async def _nodes(self, choice: NodeChoice, backends: "list[NodeBackend]", announce: Announce) -> None:
        from podfit.process.node.client import described, local_client, wait_until_ready
        from podfit.process.node.cluster_node import ClusterNode
        from podfit.process.node.pod_network import pod_network

        api, kind, options, clock = self._api, choice.kind, self.options, self._clock
        names = node_names(choice, options.nodes)
        self.nodes = tuple(
            ClusterNode(
                name,
                kind,
                backend,
                options,
                local_client(name, api.handler, self._random),
                clock,
                api_server=api.in_cluster,
                size=options.sizes.get(name),
                network=pod_network(options, backend, clock, api_port=port_of(api.server), guarded=not choice.lacks),
                bursts=True,
            )
            for name, backend in zip(names, backends, strict=True)
        )
        await asyncio.gather(*(node.start(self._changed) for node in self.nodes))
        for node in self.nodes:
            self._supervisor.watch(node.supervisor)
        async with asyncio.timeout(READY_SECONDS):
            await asyncio.gather(*(wait_until_ready(self.admin_local(), node.name) for node in self.nodes))
        for line in await described(self.admin_local(), names, choice, [node.backend.detail for node in self.nodes]):
            announce(line)

    def _play(self, own: Collection[str], announce: Announce) -> None:
        """Nodes that others make by KWOK's contract are played from now on."""
        if not self.options.play_kwok_nodes and self.options.node_groups is None:
            return
        from podfit.process.node.player import NodePlayer

        self._player = player = NodePlayer(
            self.options,
            self._client(Identity(MANAGER)),
            self._api.handler,
            self._clock,
            self._random,
            own=own,
            api_server=self._api.in_cluster,
        )
        self._supervisor.watch(player.supervisor)
        self._supervisor.run(player.run(), name="player of nodes")
        announce("  kwok      Nodes annotated kwok.x-k8s.io/node: fake are simulated; their containers do not run")

    @property
    def all_nodes(self) -> "tuple[ClusterNode, ...]":
        """Those that the cluster has by itself, and those that are played."""
        return self.nodes + (self._player.nodes if self._player is not None else ())

    async def _serve_network(self, ranges: "NodeRanges | None", announce: Announce, *, rules: bool) -> None:
        """Services lead to their pods from now on, where the kernel takes `rules`."""
        if ranges is None:
            if self.options.data.pod_range.exists():
                from podfit.process.node.pod_network import forget_services

                await forget_services(self.options.data)
            return
        await self._imports.need("podfit.process.node.network_in_up")
        from podfit.process.node.network_in_up import NetworkInUp

        network = NetworkInUp(
            self.options, ranges, self._client, clock=self._clock, random=self._random, metrics=self._api.metrics
        )
        for node in self.nodes:
            if node.network is None:
                continue
            for line in await network.lines(node.network):
                announce(line)
            if rules:
                announce(await network.serve(node.name, node.client, self._supervisor))

    async def stop(self, *, pods: bool, runtime: bool = False) -> None:
        """End everything; with `pods` the containers, the runtime and the user's kubeconfig entry go too. With
        `runtime` alone the runtime goes if no containers are on it.

        Then the machine is looked at: raises LeftBehind when something of this cluster is still there.
        """
        traces = None
        if pods:
            from podfit.process.node.leftovers import Traces

            traces = Traces(self.options.data)
            traces.look()
        ends = [node.stop(pods=pods, runtime=pods or runtime) for node in self.nodes]
        if self._player is not None:
            ends.append(self._player.stop(pods=pods))
        stopped = await asyncio.gather(*ends, return_exceptions=True)
        if not self.nodes:
            await self._abandon()
        await self._supervisor.stop()
        await self._closing.aclose()
        if pods:
            from podfit.process.node.pod_network import remove_network

            await remove_network(self.options.data)
            self.options.data.state.unlink(missing_ok=True)
            if self.access.context:
                take_back(self.access.path, self.options.data)
        for failure in stopped:
            if isinstance(failure, BaseException):
                raise failure
        if traces is not None:
            await traces.verify(self._clock)

    async def terminated(self) -> None:
        """SIGTERM ended it: if the machine goes down and nodes were given time for that, their pods end first."""
        await asyncio.gather(*(node.terminated() for node in self.nodes))

    async def _abandon(self) -> None:
        """The start failed before there were nodes: end the runtime that was made ready for them."""
        if self._backends is None:
            return
        self._serving.set()
        made = (await asyncio.gather(self._backends, return_exceptions=True))[0]
        for backend in made if isinstance(made, list) else ():
            from podfit.process.node.backend import release

            await release(backend, end=True)

    async def failure(self) -> None:
        """Waits; raises what broke a part of the cluster."""
        await self._supervisor.failure()

    def admin_client(self) -> Client:
        """An administrator's client over HTTPS, as a user would have it."""
        return load([self.options.data.kubeconfig]).client(user_agent="podfit")

    def admin_local(self) -> Client:
        return self._client(ADMIN)

    def _client(self, identity: Identity) -> Client:
        return Client(Local(self._api.handler, identity), user_agent=agent(identity), random=self._random)

    def _kubelet(self, name: str) -> Handler | None:
        return next((node.handler for node in self.all_nodes if node.name == name and not node.lost), None)

    def _changed(self) -> None:
        """A node runs on another containerd than the state file says. Until `up` is ready nothing is said there."""
        if self._ready:
            self._record(ready=True)

    def _record(self, *, ready: bool) -> None:
        self._ready = ready
        record_this_process(
            self.options.data,
            started=self._began,
            server=self.server,
            ready=ready,
            nodes=tuple(node.running() for node in self.nodes),
            kubeconfig=self.access.path,
            context=self.access.context,
            external_runtime=self.options.runtime_endpoint,
        )
