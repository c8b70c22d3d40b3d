"""The API server of `podfit up` and `podfit apiserver`: a store, the server, HTTPS in front of it, and its keys.

Servers that share an etcd have to issue and trust the same certificates and tokens. They do when they use one data
directory, which holds the authority and the signing key (made by whoever comes first), or when the flags name the same
files. Nothing else is kept outside the store, so any of them can be killed and replaced.
"""

import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from functools import cached_property

from msgspec.structs import replace

from podfit import __version__
from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.apiserver.context import KUBELET_CLIENT, Components, Context, NodeConnection, Services, unreached
from podfit.apiserver.housekeeping.extension_authentication import ProxyCertificate
from podfit.apiserver.node_dialer import NodeDialer
from podfit.apiserver.server import ApiServer
from podfit.client.kubeconfig import Access
from podfit.core.clock import Clock
from podfit.core.errors import plainly
from podfit.core.randomness import Random
from podfit.net.addresses import LOOPBACK
from podfit.net.authority import Authority
from podfit.net.files import one_at_a_time
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor
from podfit.net.system import SystemClock, SystemRandom
from podfit.net.tls import KeyPair, server_context
from podfit.net.wire import Handler
from podfit.process.access import CONTEXT, admin_access, publish, write_own
from podfit.process.apiserver_options import encryption_rules, open_audit
from podfit.process.certificates import front_proxy, serving
from podfit.process.control.component_health import PORTS, at_ports
from podfit.process.control.stores import embedded_store, etcd_store
from podfit.process.data import state as data_state
from podfit.process.data.running_process import exclusive
from podfit.process.data.version import take_over
from podfit.process.errors import MachineError
from podfit.process.foreground import Announce, start_or_stop
from podfit.process.identities import COMPONENTS
from podfit.process.listening import listen, url
from podfit.process.options import ApiServerOptions
from podfit.store.protocol import Store, StoreError


class LocalServices:
    def __init__(self) -> None:
        self._handlers: dict[tuple[str, str], Handler] = {}

    def offer(self, namespace: str, name: str, handler: Handler) -> None:
        """From now on this handler answers for the service."""
        self._handlers[namespace, name] = handler

    def find(self, reference: ServiceReference) -> Handler | None:
        return self._handlers.get((reference.namespace, reference.name))


CLIENT = "apiserver-kubelet-client"
SERVICE_PORT = 443


class NodeConnections:
    """A `NodeConnection`. `local` gives the handler of a node in this process. The client certificate for the others is
    not made before the first of them is asked.
    """

    def __init__(
        self, context: Context, authority: Authority, *, local: Callable[[str], Handler | None] = lambda _: None
    ) -> None:
        self._context, self._authority, self._local = context, authority, local

    def __call__(self, name: str) -> Handler:
        return self._local(name) or self._dialer(name)

    @cached_property
    def _dialer(self) -> NodeDialer:
        pair = self._authority.client(CLIENT, user=KUBELET_CLIENT.user)
        return NodeDialer(self._context, ProxyCertificate(pair.certificate, pair.key), self._authority.certificate)

    async def close(self) -> None:
        if "_dialer" in self.__dict__:
            await self._dialer.close()


OpenStore = Callable[[], Store]


class ApiServerComponent:
    """`prepare`, then `start`; `stop` ends what was begun. `server` is where this machine reaches it, `advertised` what
    others are told. `components` are scheduler and controllers, which else are looked for on this machine.

    `verb` is the command whose options these are. `up` also listens on loopback whatever they say (`loopback`), asks
    nodes and services in its own process by a call (`local_node`, `services`), and may be given a store. It says itself
    when services are there to be asked (`ask_backends`).
    """

    authority: Authority
    store: Store
    handler: Handler
    nodes: NodeConnection

    def __init__(
        self,
        options: ApiServerOptions,
        clock: Clock,
        *,
        verb: str,
        random: Random = SystemRandom(),  # noqa: B008  (it has no state)
        loopback: bool = False,
        store: OpenStore | None = None,
        local_node: Callable[[str], Handler | None] = lambda _: None,
        controlled_resources: frozenset[str] = frozenset(),
        own_nodes: bool = False,
        services: Services | None = None,
        components: Components | None = None,
    ) -> None:
        """`controlled_resources`: resources whose controllers run in this process; `own_nodes`: its nodes do."""
        self.server = self.advertised = ""
        self.metrics = Metrics()
        self.supervisor = Supervisor("API server")
        self._options, self._clock, self._verb, self._loopback = options, clock, verb, loopback
        self.random = random
        self._given_store, self._local_node, self._attended = store, local_node, controlled_resources
        self._services, self._own_nodes = services, own_nodes
        self._components = at_ports(PORTS) if components is None else components
        self._server: ApiServer | None = None
        self._setup: data_state.Setup | None = None
        self._closing = AsyncExitStack()

    @property
    def in_cluster(self) -> str:
        """What containers are told: the Service `kubernetes`, where pods have a network on which its address leads
        somewhere."""
        routed = bool(self._options.listening.gateway)
        return url(self._options.ranges.address(0), SERVICE_PORT) if routed else self.advertised

    def reach_pods(self, gateway: str) -> None:
        """Before the start: listen on this address of the machine, too, which pods reach."""
        self._options = replace(self._options, listening=replace(self._options.listening, gateway=gateway))

    def prepare(self) -> None:
        """Look at the data directory, and take it where nobody else may use it. Raises MachineError."""
        options = self._options
        options.data.create()
        if options.etcd is None or self._verb == "up":
            self._closing.enter_context(exclusive(options.data))
            take_over(options.data)
            self._setup = self._begin()

    def _begin(self) -> data_state.Setup:
        options = self._options
        own_store = options.etcd is None and self._given_store is None
        return data_state.begin(options.data, store=own_store, signing_key=options.signing_key is None)

    async def start(self) -> Access:
        """Returns when the API serves: an administrator's access. Raises MachineError."""
        options, clock = self._options, self._clock
        with (
            # of servers that start together on one directory, the first makes the authority and the others find it
            one_at_a_time(options.data.root) if self._setup is None else nullcontext(),
            data_state.telling_of_damage(options.data),
        ):
            setup = self._begin() if self._setup is None else self._setup
            signing_key = options.signing_key or data_state.signing_key(options.data, setup)
            authority = self.authority = Authority.load(
                options.data.pki, clock=clock, make=setup.allows(*data_state.AUTHORITY)
            )
            pair = options.tls or self._serving(authority)
            trusted = _trusted(options, authority)
            proxy = front_proxy(options.data, trusted, clock, make=setup.allows(*data_state.FRONT_PROXY))
            if options.etcd is not None:
                data_state.complete(options.data, setup)
        tls = _tls(pair)
        store = self.store = await self._opened(make=setup.allows(data_state.STORE))
        self._closing.push_async_callback(store.close)
        data_state.complete(options.data, setup)
        self.nodes = self._nodes(store, authority)
        api = self._server = ApiServer(
            Context(
                store,
                clock,
                options.gates,
                self.nodes,
                options.legacy,
                self._services or (lambda _: None),
                controlled_resources=self._attended,
                own_nodes=self._own_nodes,
                routes_services=bool(options.listening.gateway),
                ranges=options.ranges,
                random=self.random,
                clients_clock=SystemClock(),
                supervisor=self.supervisor,
                components=self._components,
            ),
            signing_key=signing_key,
            metrics=self.metrics,
            audit=open_audit(options.audit, clock),
            front_proxy=proxy,
            shared=options.etcd is not None,
            ask_later=self._services is not None,
        )
        try:
            await self._serve(api, HttpsServer(api.handler, tls, clients=trusted, identify=api.identify))
        except StoreError as error:
            raise MachineError(str(error)) from error
        return admin_access(authority, self.server)

    async def _serve(self, api: ApiServer, https: HttpsServer) -> None:
        options, listening = self._options, self._options.listening
        await api.start()
        self._closing.push_async_callback(api.stop)
        addresses = listening.addresses if self._loopback else listening.bound
        port = await listen(https, addresses, options.port, options.data.command(self._verb, "--port", "0"))
        if listening.gateway and "0.0.0.0" not in addresses:
            await https.listen(listening.gateway, port, not_yet=True)
        self.server = url(LOOPBACK if self._loopback else listening.reachable, port)
        self.advertised = url(listening.advertised, port)
        self._closing.push_async_callback(https.close)
        self._closing.callback(api.drain)
        self._closing.push_async_callback(api.withdraw)
        await api.publish(self.advertised)
        self.handler = api.handler

    async def ask_backends(self) -> None:
        """The services of `services` answer from now on."""
        if self._server is not None:
            await self._server.ask_backends()

    async def stop(self) -> None:
        await self._closing.aclose()

    def _nodes(self, store: Store, authority: Authority) -> NodeConnection:
        context = Context(store, self._clock, self._options.gates, unreached, supervisor=self.supervisor)
        nodes = NodeConnections(context, authority, local=self._local_node)
        self._closing.push_async_callback(nodes.close)
        return nodes

    def _serving(self, authority: Authority) -> KeyPair:
        """Those that share a directory and listen on different addresses have a certificate each."""
        listening = self._options.listening
        place = "-".join(listening.bound).replace(":", "-")
        name = "apiserver" if self._loopback or place == LOOPBACK else f"apiserver-{place}"
        return serving(authority, *listening.hosts(self._options.ranges.address(0)), name=name)

    async def _opened(self, *, make: bool) -> Store:
        options = self._options
        if self._given_store is not None:
            return self._given_store()
        rules = encryption_rules(options.encryption)
        try:
            if options.etcd is None:
                return embedded_store(options.data.store, rules, make=make, watcher=self.supervisor)
            return await etcd_store(options.etcd, rules, watcher=self.supervisor)
        except StoreError as error:
            if options.etcd is None:
                raise data_state.unopened(options.data, error) from error
            raise MachineError(str(error), fix=("is etcd running?",)) from error


class ApiServerProcess:
    """The API server alone. `start` makes one that serves, `stop` ends it."""

    def __init__(self, options: ApiServerOptions, clock: Clock) -> None:
        self.options, self._clock = options, clock
        self._api = ApiServerComponent(options, clock, verb="apiserver")

    @property
    def server(self) -> str:
        return self._api.server

    @classmethod
    async def start(cls, options: ApiServerOptions, *, announce: Announce, clock: Clock) -> "ApiServerProcess":
        """Returns when the API serves. Raises ClusterError, and then nothing runs."""
        process = cls(options, clock)
        await start_or_stop(process._start(announce), process.stop)
        return process

    async def _start(self, announce: Announce) -> None:
        began = self._clock.monotonic()
        announce(f"podfit {__version__}: Kubernetes API 1.36")
        self._api.prepare()
        access = await self._api.start()
        where = self._write_kubeconfigs(access)
        announce(f"  api       {self.server}, ready in {1000 * (self._clock.monotonic() - began):.0f} ms")
        announce(f"  store     {place_of_store(self.options)}")
        announce(f"  kubectl   {where}")

    def _write_kubeconfigs(self, access: Access) -> str:
        """An administrator's, and one each for the components that run apart."""
        data = self.options.data
        if self.options.kubeconfig is None:
            write_own(data.kubeconfig, CONTEXT, access)
            where = str(data.kubeconfig)
        else:
            where = str(publish(access, data, self.options.kubeconfig))
        for name, user in COMPONENTS.items():
            pair = self._api.authority.client(name, user=user)
            own = Access(self.server, access.authorities, pair.certificate, pair.key)
            write_own(data.component_kubeconfig(name), name, own)
        return where

    async def failure(self) -> None:
        """Waits; raises what broke a part of it."""
        await self._api.supervisor.failure()

    async def stop(self, *, pods: bool = False) -> None:
        """There are no pods here."""
        await self._api.stop()


def place_of_store(options: ApiServerOptions) -> str:
    return f"etcd at {', '.join(options.etcd.servers)}" if options.etcd else str(options.data.store)


def _trusted(options: ApiServerOptions, authority: Authority) -> bytes:
    """Who may vouch for clients: always the own authority, which signed the administrator."""
    if options.client_ca is None:
        return authority.certificate
    try:
        return authority.certificate + b"\n" + options.client_ca.read_bytes()
    except OSError as error:
        raise MachineError(f"--client-ca-file cannot be read: {plainly(error)}") from error


def _tls(pair: KeyPair) -> ssl.SSLContext:
    try:
        return server_context(pair)
    except (OSError, ssl.SSLError) as error:
        raise MachineError(
            f"the server's certificate cannot be used: {pair.certificate_file}: {plainly(error)}"
        ) from error
