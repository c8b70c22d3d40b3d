"""The API server alone in its process: over its own file, or over an etcd that several of them share.

Those that share an etcd have to issue and trust the same certificates and tokens. They do when they use one data
directory, which holds the authority and the signing key (made by whoever comes first), or when the flags name the same
files. Nothing else is kept outside the store, so any of them can be killed and replaced.
"""

import fcntl
import os
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import msgspec

from podfit import __version__
from podfit.apiserver.audit.options import AuditOptions
from podfit.apiserver.context import Context, unreached
from podfit.apiserver.embedded import EtcdOptions, Store, StoreError, embedded_store, etcd_store
from podfit.apiserver.server import ApiServer
from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.decide.services import ServiceRanges
from podfit.net.authority import Authority
from podfit.net.client_certificates import Trust
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import Metrics
from podfit.net.tls import KeyPair, server_context
from podfit.process import given_files, remains
from podfit.process.access import CONTEXT, admin_access, write_given
from podfit.process.certificates import LOOPBACK, front_proxy, serving
from podfit.process.errors import MachineError, UsageError
from podfit.process.identities import COMPONENTS
from podfit.process.layout import DEFAULT_PORT, DataDir
from podfit.process.listening import Listening, listen, url
from podfit.process.node_connections import NodeConnections
from podfit.process.options import check_audit, encryption_rules, open_audit
from podfit.process.process import exclusive

Announce = Callable[[str], None]


class AloneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is not named lives in the data directory."""

    data: DataDir
    etcd: EtcdOptions | None = None
    port: int = DEFAULT_PORT
    listening: Listening = Listening()
    ranges: ServiceRanges = ServiceRanges()
    kubeconfig: Path | None = None
    tls: KeyPair | None = None
    client_ca: Path | None = None
    signing_key: Path | None = None
    encryption: Path | None = None
    gates: FeatureGates = msgspec.field(default_factory=FeatureGates)
    audit: AuditOptions = msgspec.field(default_factory=AuditOptions)

    def check(self) -> None:
        """UsageError when the options contradict each other, or name a file that is not what it should be."""
        given_files.check_data(self.data.root)
        if self.kubeconfig is not None:
            given_files.check_kubeconfig(self.kubeconfig)
        check_audit(self.audit)
        if not 0 <= self.port <= 65535:
            raise UsageError(f"--port {self.port} is not a port (0 to 65535; 0 takes a free one)")
        self.listening.check()
        if self.etcd is not None:
            try:
                self.etcd.check()
            except StoreError as error:
                raise UsageError(f"--etcd-servers: {error}") from None
            given_files.check_etcd(self.etcd)
        if self.tls is not None:
            given_files.check_serving(self.tls)
        if self.client_ca is not None:
            given_files.check_client_ca(self.client_ca)
        if self.signing_key is not None:
            given_files.check_signing_key(self.signing_key)
        encryption_rules(self.encryption)


class Alone:
    """`start` makes one that serves, `stop` ends it."""

    def __init__(self, options: AloneOptions, clock: Clock) -> None:
        self.options = options
        self.server = ""
        self._clock = clock
        self._closing = AsyncExitStack()

    @classmethod
    async def start(cls, options: AloneOptions, *, announce: Announce, clock: Clock) -> "Alone":
        """Returns when the API serves. Raises ClusterError, and then nothing runs."""
        alone = cls(options, clock)
        try:
            await alone._start(announce)
        except BaseException:
            await alone.stop()
            raise
        return alone

    async def stop(self) -> None:
        await self._closing.aclose()

    async def _start(self, announce: Announce) -> None:
        options, clock = self.options, self._clock
        began = clock.monotonic()
        announce(f"podfit {__version__}: Kubernetes API 1.36")
        options.data.create()
        if options.etcd is None:
            self._closing.enter_context(exclusive(options.data))
        with _one_at_a_time(options.data), remains.telling_of_damage(options.data):
            own_key = options.signing_key is None
            setup = remains.begin(options.data, store=options.etcd is None, signing_key=own_key)
            signing_key = options.signing_key or remains.signing_key(options.data, setup)
            authority = Authority.load(options.data.pki, clock=clock, make=setup.allows(*remains.AUTHORITY))
            pair = options.tls or self._serving(authority)
            access = admin_access(authority, "")
            trusted = _trusted(options, authority)
            proxy = front_proxy(options.data, trusted, clock, make=setup.allows(*remains.FRONT_PROXY))
            if options.etcd is not None:
                remains.complete(options.data, setup)
        tls = _tls(pair)
        store = await self._open_store(make=setup.allows(remains.STORE))
        self._closing.push_async_callback(store.close)
        remains.complete(options.data, setup)
        nodes = NodeConnections(Context(store, clock, options.gates, unreached), authority)
        self._closing.push_async_callback(nodes.close)
        context = Context(store, clock, options.gates, nodes, ranges=options.ranges)
        api = ApiServer(
            context,
            signing_key=signing_key,
            metrics=Metrics(),
            audit=open_audit(options.audit, clock),
            front_proxy=proxy,
            shared=options.etcd is not None,
        )
        try:
            await api.start()
        except StoreError as error:
            raise MachineError(str(error)) from error
        self._closing.push_async_callback(api.stop)
        https = HttpsServer(api.handler, tls, clients=Trust(trusted, known=authority.knows))
        otherwise = options.data.command("apiserver", "--port", "0")
        port = await listen(https, options.listening.bound, options.port, otherwise)
        self.server = url(options.listening.reachable, port)
        self._closing.push_async_callback(https.close)
        self._closing.callback(api.drain)
        self._closing.push_async_callback(api.withdraw)
        await api.publish(url(options.listening.advertised, port))
        where = options.kubeconfig or options.data.kubeconfig
        write_given(
            where,
            kubeconfig_edit.standalone(
                CONTEXT, Access(self.server, access.authorities, access.certificate, access.key)
            ),
        )
        for name, user in COMPONENTS.items():
            pair = authority.client(name, user=user)
            own = Access(self.server, access.authorities, pair.certificate, pair.key)
            write_given(options.data.component_kubeconfig(name), kubeconfig_edit.standalone(name, own))
        announce(f"  api       {self.server}, ready in {1000 * (clock.monotonic() - began):.0f} ms")
        announce(f"  store     {_place(options)}")
        announce(f"  kubectl   {where}")

    def _serving(self, authority: Authority) -> KeyPair:
        """Those that share a directory and listen on different addresses have a certificate each."""
        listening = self.options.listening
        place = "-".join(listening.bound).replace(":", "-")
        name = "apiserver" if place == LOOPBACK else f"apiserver-{place}"
        return serving(authority, *listening.hosts(self.options.ranges.address(0)), name=name)

    async def _open_store(self, *, make: bool) -> Store:
        options = self.options
        rules = encryption_rules(options.encryption)
        try:
            if options.etcd is None:
                return embedded_store(options.data.store, rules, make=make)
            return await etcd_store(options.etcd, rules)
        except StoreError as error:
            if options.etcd is None:
                raise remains.unopened(options.data, error) from error
            raise MachineError(str(error), fix=("is etcd running?",)) from error


async def serve(
    options: AloneOptions, *, announce: Announce, clock: Clock, until: Callable[[], Awaitable[object]]
) -> None:
    """Serve until `until` returns or is cancelled."""
    alone = await Alone.start(options, announce=announce, clock=clock)
    try:
        await until()
    finally:
        await alone.stop()


def _trusted(options: AloneOptions, authority: Authority) -> bytes:
    """Who may vouch for clients: always the own authority, which signed the administrator."""
    if options.client_ca is None:
        return authority.certificate
    try:
        return authority.certificate + b"\n" + options.client_ca.read_bytes()
    except OSError as error:
        raise MachineError(f"--client-ca-file cannot be read: {error}") from error


def _tls(pair: KeyPair) -> ssl.SSLContext:
    try:
        return server_context(pair)
    except (OSError, ssl.SSLError) as error:
        raise MachineError(f"the server's certificate cannot be used: {pair.certificate_file}: {error}") from error


def _place(options: AloneOptions) -> str:
    return f"etcd at {', '.join(options.etcd.servers)}" if options.etcd else str(options.data.store)


@contextmanager
def _one_at_a_time(data: DataDir) -> Iterator[None]:
    """Of servers that start together on one directory, the first makes the authority and the others find it."""
    handle = os.open(data.root / "pki.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
