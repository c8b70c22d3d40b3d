"""A node in a process of its own: it joins an API server somewhere else, and serves logs and metrics over HTTPS.

    client certificate   asked for with a bootstrap token, or given; renewed        node_credentials
    its server           at the node's address; callers need a right to the Node    kubelet.server.access
    serving certificate  asked for as the node; renewed                             client.certificates

SIGTERM and SIGKILL leave the containers running, as upstream's kubelet does; SIGINT, which `podfit down` sends, ends
them and the private containerd too.
"""

import logging
from contextlib import AsyncExitStack
from functools import partial

from podfit import __version__
from podfit.client.certificates import CertificateManager
from podfit.client.delegated import DelegatedAccess
from podfit.core.clock import Clock
from podfit.core.times import format_time
from podfit.decide.certificates import NODE, NODE_SERVING, NODES
from podfit.decide.machine import lacking, node_checks
from podfit.decide.node.options import PodNetworkKind
from podfit.kubelet.server.access import NodeAccess
from podfit.net.addresses import own_address
from podfit.net.certificate_requests import Names, Pair, read_pair
from podfit.net.http_server import HttpsServer
from podfit.net.supervisor import Supervisor
from podfit.net.tls import server_context, show
from podfit.net.wire import SMALL_BODY, Handler, Request, Response
from podfit.process.data.running_process import exclusive, record_this_process
from podfit.process.data.version import take_over
from podfit.process.errors import MachineError, UsageError
from podfit.process.foreground import Announce, start_or_stop
from podfit.process.listening import listen
from podfit.process.node.backend import NodeBackend, real_backend, release, simulated_backend
from podfit.process.node.choice import choose_network, no_real_node
from podfit.process.node.cluster_node import ClusterNode
from podfit.process.node.credentials import NodeClient, node_access
from podfit.process.node.machine import look
from podfit.process.node.options import KubeletProcessOptions
from podfit.process.node.pod_network import pod_network, remove_network
from podfit.process.node.runtime import PreparedRuntime, prepare_runtime
from podfit.process.options import NodeKind, makes_network

log = logging.getLogger(__name__)


class KubeletProcess:
    """`start` makes one whose node is registered, `stop` ends it; `failure` returns only if a part of it breaks."""

    def __init__(self, options: KubeletProcessOptions, clock: Clock) -> None:
        self.options = options
        self._clock = clock
        self._closing = AsyncExitStack()
        self._supervisor = Supervisor("kubelet")
        self._node: ClusterNode | None = None
        self._backend: NodeBackend | None = None
        self._access: Handler | None = None
        self._tls = server_context(options.tls)
        self._server = ""

    @classmethod
    async def start(cls, options: KubeletProcessOptions, *, announce: Announce, clock: Clock) -> "KubeletProcess":
        """Raises ClusterError, and then nothing runs that did not run before."""
        process = cls(options, clock)
        await start_or_stop(process._start(announce), partial(process.stop, pods=False))
        return process

    async def _start(self, announce: Announce) -> None:
        options, clock = self.options, self._clock
        began = clock.monotonic()
        address = options.node_ip or own_address()
        if not address:
            raise MachineError("this machine has no address but loopback", fix=("name one:  --node-ip ADDRESS",))
        announce(f"podfit {__version__}: kubelet of node {options.name}")
        self._closing.enter_context(exclusive(options.data))
        take_over(options.data)
        prepared = _prepared(options, clock)
        access = await node_access(options.name, options.kubeconfig, options.bootstrap_kubeconfig, clock, announce)
        self._server = access.server
        node_client = NodeClient(options.name, access, options.kubeconfig)
        self._closing.push_async_callback(node_client.close)
        if renewal := node_client.renewal(clock):
            self._supervisor.run(renewal.run(), name="client certificate")
        port = await self._listen(address, self._client_authorities(access.authorities))
        self._backend = (
            await real_backend(prepared, options, clock) if prepared else simulated_backend(clock, programs_end=True)
        )
        self._node = node = ClusterNode(
            options.name,
            options.kind,
            self._backend,
            options,
            node_client.client,
            clock,
            api_server=access.server,
            address=address,
            port=port,
            network=pod_network(options, self._backend, clock, api_port=0) if prepared else None,
        )
        self._access = NodeAccess(node.handler, DelegatedAccess(node_client.client, clock), node=options.name)
        self._record()
        await node.start(self._record)
        self._supervisor.watch(node.supervisor)
        if options.tls is None:
            self._supervisor.run(self._serving(node_client, address).run(), name="serving certificate")
        announce(f"  api       {access.server}")
        announce(f"  node      {options.name}: {options.kind}; {self._backend.detail}")
        announce(f"  serves    https://{address}:{port}")
        announce(f"  ready     in {clock.monotonic() - began:.2f} s")

    async def _listen(self, address: str, authorities: bytes) -> int:
        options = self.options
        https = HttpsServer(self._answer, self._tls, clients=authorities, body_limit=SMALL_BODY)
        self._closing.push_async_callback(https.close)
        where = options.address or address
        return await listen(https, (where,), options.port, options.data.command("kubelet", "--port", "0"))

    def _client_authorities(self, of_cluster: bytes | None) -> bytes:
        """Who may vouch for callers: by default who vouches for the API server."""
        if self.options.client_ca is not None:
            return self.options.client_ca.read_bytes()
        if of_cluster is None:
            raise UsageError(
                "the kubeconfig names no certificate-authority: say with --client-ca-file who signs the "
                "certificates of those that ask this node"
            )
        return of_cluster

    async def _answer(self, request: Request) -> Response:
        if self._access is None:
            return Response(503, {"content-type": "text/plain"}, b"the node is starting\n")
        return await self._access(request)

    def _serving(self, node_client: NodeClient, address: str) -> CertificateManager:
        options = self.options
        file = options.data.pki / "kubelet-server.pem"
        names = Names(NODE + options.name, (NODES,), (options.name,), (address,))
        known = read_pair(file, names, self._clock.now())
        if known is not None:
            show(self._tls, known.certificate, known.key)

        async def changed(pair: Pair) -> None:
            pair.keep(file)
            show(self._tls, pair.certificate, pair.key)

        return CertificateManager(
            node_client.client, self._clock, signer=NODE_SERVING, use="server", names=names, pair=known, changed=changed
        )

    async def stop(self, *, pods: bool) -> None:
        """Stops it. With `pods` the containers and the private containerd go too, else they run on."""
        try:
            if self._node is not None:
                await self._node.stop(pods=pods, runtime=pods)
            elif self._backend is not None:
                await release(self._backend, end=False)
        finally:
            await self._supervisor.stop()
            await self._closing.aclose()
            if pods:
                await remove_network(self.options.data)
                self.options.data.state.unlink(missing_ok=True)

    async def terminated(self) -> None:
        """SIGTERM ended it: if the machine goes down and the node was given time for that, its pods end first."""
        if self._node is not None:
            await self._node.terminated()

    async def failure(self) -> None:
        """Waits; raises what broke a part of the process."""
        await self._supervisor.failure()

    def _record(self) -> None:
        """For `podfit status` and `podfit down`."""
        assert self._node is not None
        record_this_process(
            self.options.data,
            started=format_time(self._clock.now()),
            server=self._server,
            ready=True,
            nodes=(self._node.running(),),
            kubeconfig=self.options.kubeconfig,
            joined=self.options.name,
            external_runtime=self.options.runtime_endpoint,
        )


def _prepared(options: KubeletProcessOptions, clock: Clock) -> PreparedRuntime | None:
    if options.kind is NodeKind.SIMULATED:
        return None
    wanted = options.kubelet.pod_network is PodNetworkKind.POD and makes_network(options)
    facts = look(options.data, clock.now(), versions=False, rules=wanted)
    if lacks := lacking(node_checks(facts, private=not options.runtime_endpoint)):
        raise no_real_node("a real node cannot run here", lacks, "podfit kubelet --runtime simulated")
    if wanted:
        choose_network(options, facts)
    return prepare_runtime(options, clock)
