"""Under which names the API server shows itself."""

from podfit.net.tls import Authority, KeyPair

LOOPBACK = "127.0.0.1"
HOSTS = (
    LOOPBACK, "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)  # fmt: skip


def serving(authority: Authority, *more: str, name: str = "apiserver") -> KeyPair:
    """A certificate for the usual names and `more`; with other names than last time it is issued anew."""
    return authority.server(name, hosts=tuple(dict.fromkeys((*HOSTS, *more))))
