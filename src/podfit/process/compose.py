"""A whole cluster in one process: store, API server, controllers, scheduler, nodes.

Nothing in a component knows that it is not alone in its process; they share the API server's handler instead of a
socket. containerd is launched first, because it takes longer than anything of ours and needs nothing of ours. What the
API server does not need to answer is imported when it answers (`Later`): kubelet, gRPC, controllers, scheduler.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from podfit import __version__
from podfit.apiserver.context import Context, unreached
from podfit.apiserver.embedded import Store, StoreError, embedded_store
from podfit.apiserver.server import ApiServer
from podfit.core.clock import Clock
from podfit.core.times import format_time
from podfit.net.authority import Authority
from podfit.net.client_certificates import Trust
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import Handler, Identity
from podfit.process import remains
from podfit.process.access import CONTEXT, Published, admin_access, keep, publish
from podfit.process.certificates import LOOPBACK, front_proxy, serving
from podfit.process.errors import MachineError
from podfit.process.identities import agent
from podfit.process.later import Later
from podfit.process.listening import listen, url
from podfit.process.node_connections import NodeConnections
from podfit.process.options import (
    KubeletOptions,
    NodeChoice,
    NodeKind,
    UpOptions,
    choose_node,
    encryption_rules,
    node_names,
    open_audit,
)
from podfit.process.parts import Parts
from podfit.process.process import Process, UpState, exclusive, write_state
from podfit.process.remains import Setup

if TYPE_CHECKING:
    from podfit.client.rest import Client
    from podfit.process.leftovers import Traces
    from podfit.process.nodes import ClusterNode, Machinery
    from podfit.process.runtime import Footing

log = logging.getLogger(__name__)

Announce = Callable[[str], None]
READY_SECONDS = 60.0


class Cluster:
    """`start` makes one that runs, `stop` ends it; `failure` returns only if a part of it breaks."""

    def __init__(self, options: UpOptions, clock: Clock, store: Callable[[], Store] | None) -> None:
        self.options = options
        self.nodes: tuple[ClusterNode, ...] = ()
        self._began, self._ready = format_time(clock.now()), False
        self.server = self.advertised = ""
        self.access = Published(options.data.kubeconfig, "", "")
        self._clock = clock
        self._given_store = store
        self._closing = AsyncExitStack()
        self._parts = Parts()
        self._https: HttpsServer | None = None
        self._machinery: asyncio.Future[list[Machinery]] | None = None
        self._metrics = Metrics()
        self._later = Later()
        self._closing.callback(self._later.close)
        self._serving = asyncio.Event()

    @classmethod
    async def start(
        cls,
        options: UpOptions,
        *,
        announce: Announce,
        clock: Clock | None = None,
        store: Callable[[], Store] | None = None,
    ) -> "Cluster":
        """Returns when the API serves and every node is Ready. Raises ClusterError, and then nothing runs.

        By default time is the machine's, and the store a file in the data directory.
        """
        cluster = cls(options, clock or SystemClock(), store)
        try:
            await cluster._start(announce)
        except BaseException as error:
            await cluster.stop(pods=False, runtime=True)
            if isinstance(error, StoreError):
                raise MachineError(f"the cluster cannot start: {error}") from error
            raise
        return cluster

    async def _start(self, announce: Announce) -> None:
        options, clock = self.options, self._clock
        began = clock.monotonic()
        if options.kubelet != KubeletOptions():
            from podfit.process.kubelet_config import check

            check(options.kubelet)
        choice = choose_node(options)
        self._closing.enter_context(exclusive(options.data))
        setup = remains.begin(options.data, store=self._given_store is None)
        self._record(ready=False)
        announce(f"podfit {__version__}: Kubernetes API 1.36")
        self._machinery = asyncio.ensure_future(self._made(choice, _footing(choice, options, clock)))
        authority = await self._control_plane(setup)
        access = admin_access(authority, self.server)
        keep(options.data, access)
        announce(f"  api       {self.server}, ready in {1000 * (clock.monotonic() - began):.0f} ms")
        if not options.listening.local:
            announce(f"            for others {self.advertised}, listening on {', '.join(options.listening.addresses)}")
        self._serving.set()
        await asyncio.sleep(0)  # the nodes' imports come first
        loops = asyncio.ensure_future(self._control_loops(authority))
        published = asyncio.ensure_future(asyncio.to_thread(publish, access, options.kubeconfig))
        try:
            await self._nodes(choice, await asyncio.shield(self._machinery), announce)
            await loops
        finally:
            loops.cancel()
            self.access = await published  # also when the start fails: it has to be taken back
        announce(f"  store     {options.data.store}")
        where = f'context "{CONTEXT}" in ' if self.access.context else ""
        current = "the current context" if self.access.current else "current context unchanged"
        announce(f"  kubectl   {where}{self.access.path}{f' ({current})' if where else ''}")
        announce(f"  ready     in {clock.monotonic() - began:.2f} s")
        self._record(ready=True)

    async def _control_plane(self, setup: Setup) -> Authority:
        """Store, and API server behind HTTPS."""
        options, clock = self.options, self._clock
        with remains.telling_of_damage(options.data):
            signing_key = remains.signing_key(options.data, setup)
            authority = Authority.load(options.data.pki, clock=clock, make=setup.allows(*remains.AUTHORITY))
            proxy = front_proxy(options.data, authority.certificate, clock, make=setup.allows(*remains.FRONT_PROXY))
        given = self._given_store
        store = self._store = given() if given else _store(options, make=setup.allows(remains.STORE))
        remains.complete(options.data, setup)
        self._closing.push_async_callback(store.close)
        nodes = NodeConnections(Context(store, clock, options.gates, unreached), authority, local=self._kubelet)
        self._closing.push_async_callback(nodes.close)
        context = Context(store, clock, options.gates, nodes, options.legacy, ranges=options.ranges)
        api = ApiServer(
            context,
            signing_key=signing_key,
            metrics=self._metrics,
            audit=open_audit(options.audit, clock),
            front_proxy=proxy,
        )
        await api.start()
        self._closing.push_async_callback(api.stop)
        pair = serving(authority, *options.listening.hosts(options.ranges.address(0)))
        trust = Trust(authority.certificate, known=authority.knows)
        self._https = HttpsServer(api.handler, server_context(pair), clients=trust)
        otherwise = options.data.command("up", "--port", "0")
        port = await listen(self._https, options.listening.addresses, options.port, otherwise)
        self.server, self.advertised = url(LOOPBACK, port), url(options.listening.advertised, port)
        self._closing.push_async_callback(self._https.close)
        self._closing.callback(api.drain)
        await api.publish(self.advertised)
        self._handler = api.handler
        return authority

    async def _control_loops(self, authority: Authority) -> None:
        """Controllers and scheduler; returns when they have made what a first pod needs."""
        await self._later.need("podfit.process.loops")
        from podfit.process.loops import control_loops, default_account

        for part in control_loops(self._client, self.options, self._clock, self._metrics, authority=authority):
            self._parts.run(part)
        async with asyncio.timeout(READY_SECONDS):
            await default_account(self.admin_local())

    async def _made(self, choice: NodeChoice, stands_on: "Footing | None") -> "list[Machinery]":
        """What the kubelets drive, once the API serves."""
        await self._serving.wait()
        grpc = ("podfit.kubelet.runtime.cri.client",) if choice.kind is NodeKind.REAL else ()
        await self._later.need("podfit.apiserver.resources", "podfit.process.nodes", *grpc)
        from podfit.process.nodes import real_machinery, simulated_machinery

        if stands_on is not None:
            return [await real_machinery(stands_on, self.options, self._clock)]
        return [simulated_machinery(self._clock) for _ in node_names(choice, self.options.nodes)]

    async def _nodes(self, choice: NodeChoice, machinery: "list[Machinery]", announce: Announce) -> None:
        from podfit.process.nodes import ClusterNode, local_client, pressures, wait_until_ready

        names = node_names(choice, self.options.nodes)
        self.nodes = tuple(
            ClusterNode(
                name,
                choice.kind,
                each,
                self.options,
                local_client(name, self._handler),
                self._clock,
                api_server=self.advertised,
            )
            for name, each in zip(names, machinery, strict=True)
        )
        await asyncio.gather(*(node.start(self._changed) for node in self.nodes))
        async with asyncio.timeout(READY_SECONDS):
            await asyncio.gather(*(wait_until_ready(self.admin_local(), node.name) for node in self.nodes))
        if not self.nodes:
            announce(f"  node      none, {choice.why}")
        if self.nodes:
            span = " to ".join(dict.fromkeys((names[0], names[-1])))
            announce(f"  node      {span}: {choice.kind} ({choice.why}); {self.nodes[0].machinery.detail}")
        for node in self.nodes:
            for pressure in await pressures(self.admin_local(), node.name):
                announce(f'  warning   {node.name}: {pressure}; no new pods (--eviction-hard "" switches this off)')

    async def stop(self, *, pods: bool, runtime: bool = False) -> None:
        """End everything; with `pods` the containers, the runtime and the user's kubeconfig entry go too. With
        `runtime` alone the runtime goes if no containers are on it.

        Then the machine is looked at: raises LeftBehind when something of this cluster is still there.
        """
        traces = self._traces() if pods else None
        ends = (node.stop(pods=pods, runtime=pods or runtime) for node in self.nodes)
        stopped = await asyncio.gather(*ends, return_exceptions=True)
        if not self.nodes:
            await self._abandon()
        await self._parts.end()
        await self._closing.aclose()
        if pods:
            self.options.data.state.unlink(missing_ok=True)
            if self.access.context:
                from podfit.client.kubeconfig_edit import remove

                remove(self.access.path, self.access.context)
        for failure in stopped:
            if isinstance(failure, BaseException):
                raise failure
        if traces is not None:
            await traces.verify(self._clock)

    def _traces(self) -> "Traces":
        from podfit.process.leftovers import Traces

        traces = Traces(self.options.data)
        traces.look()
        return traces

    async def _abandon(self) -> None:
        """The start failed before there were nodes: end the runtime that was made ready for them."""
        if self._machinery is None:
            return
        self._serving.set()
        made = (await asyncio.gather(self._machinery, return_exceptions=True))[0]
        for machinery in made if isinstance(made, list) else ():
            from podfit.process.nodes import release

            await release(machinery, end=True)

    async def failure(self) -> None:
        """Waits; raises what broke a part of the cluster."""
        await self._parts.failure()

    @property
    def revision(self) -> int:
        """Of the newest write."""
        return self._store.revision

    def admin_client(self) -> "Client":
        """An administrator's client over HTTPS, as a user would have it."""
        from podfit.client.kubeconfig import load

        return load([self.options.data.kubeconfig]).client(user_agent="podfit")

    def admin_local(self) -> "Client":
        return self._client(Identity("kubernetes-admin", ("system:masters",)))

    def _client(self, identity: Identity) -> "Client":
        from podfit.client.rest import Client
        from podfit.client.transport import Local

        return Client(Local(self._handler, identity), user_agent=agent(identity))

    def _kubelet(self, name: str) -> Handler | None:
        return next((node.handler for node in self.nodes if node.name == name), None)

    def _changed(self) -> None:
        """A node runs on another containerd than the state file says. Until `up` is ready nothing is said there."""
        if self._ready:
            self._record(ready=True)

    def _record(self, *, ready: bool) -> None:
        self._ready = ready
        me = Process.current()
        nodes = tuple(node.running() for node in self.nodes)
        write_state(
            self.options.data,
            UpState(
                pid=me.pid,
                start_ticks=me.start_ticks,
                version=__version__,
                started=self._began,
                server=self.server,
                ready=ready,
                nodes=nodes,
                kubeconfig=str(self.access.path),
                context=self.access.context,
                external_runtime=self.options.runtime_endpoint,
            ),
        )


def _footing(choice: NodeChoice, options: UpOptions, clock: Clock) -> "Footing | None":
    if choice.kind is not NodeKind.REAL:
        return None
    from podfit.process.runtime import footing

    return footing(options, clock)


def _store(options: UpOptions, *, make: bool) -> Store:
    rules = encryption_rules(options.encryption)
    try:
        return embedded_store(options.data.store, rules, make=make)
    except StoreError as error:
        raise remains.unopened(options.data, error) from error
