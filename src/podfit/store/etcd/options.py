"""Options of the etcd connection; read before gRPC is loaded, so that a mistake is said at once."""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from podfit.store.protocol import StoreError

PREFIX = "/registry"


class EtcdUnusable(StoreError):
    """etcd cannot be asked as it was said, is too old, or holds what podfit did not write."""


class EtcdOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`servers` are URLs, `http://HOST:PORT` or `https://HOST:PORT`, of members of one cluster."""

    servers: tuple[str, ...]
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    prefix: str = PREFIX

    def check(self) -> None:
        """Raises EtcdUnusable for what cannot work."""
        if not self.servers:
            raise EtcdUnusable("no etcd server was named")
        schemes = {_scheme(server) for server in self.servers}
        if len(schemes) > 1:
            raise EtcdUnusable("etcd servers are either all http or all https")
        files = (self.ca_file, self.cert_file, self.key_file)
        if "http" in schemes and any(files):
            raise EtcdUnusable("certificates for etcd were given, but its servers are named with http://")
        if (self.cert_file is None) is not (self.key_file is None):
            raise EtcdUnusable("a client certificate for etcd needs its key, and a key its certificate")
        if not self.prefix.startswith("/") or self.prefix.endswith("/"):
            raise EtcdUnusable(f"an etcd prefix begins with / and does not end with it, unlike {self.prefix!r}")


def _scheme(server: str) -> str:
    parts = urlsplit(server)
    try:
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port and parts.path in ("", "/")
    except ValueError:
        usable = False
    if not usable:
        raise EtcdUnusable(f"{server!r} is no etcd server: it should look like https://127.0.0.1:2379")
    return parts.scheme
