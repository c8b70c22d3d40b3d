"""Names in the API server's serving certificate, and its client certificate as front proxy."""

from podfit.apiserver.housekeeping.extension_authentication import FrontProxy, ProxyCertificate
from podfit.core.clock import Clock
from podfit.net.addresses import LOOPBACK
from podfit.net.authority import Authority
from podfit.net.tls import KeyPair
from podfit.process.data.data_dir import DataDir

PROXY = "front-proxy-client"
HOSTS = (
    LOOPBACK,
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


def serving(authority: Authority, *more: str, name: str = "apiserver") -> KeyPair:
    """A certificate for the usual names and `more`; with other names than last time it is issued anew."""
    return authority.server(name, hosts=tuple(dict.fromkeys((*HOSTS, *more))))


def front_proxy(data: DataDir, clients: bytes, clock: Clock, *, make: bool = True) -> FrontProxy:
    """A certificate of an authority of its own: whoever has a certificate of it can be anybody. `clients` is who signs
    those of users (PEM)."""
    authority = Authority.load(data.pki / "front-proxy", clock=clock, name="podfit-front-proxy-ca", make=make)
    pair = authority.client(PROXY, user=PROXY)
    return FrontProxy(ProxyCertificate(pair.certificate, pair.key), authority.certificate, PROXY, clients)
