"""Options of the etcd connection; read before gRPC is loaded, so that a mistake is said at once."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from podfit.core.options import Option, Unit
from podfit.store.protocol import StoreError

PREFIX = "/registry"
_PREFIX = Unit(read=lambda text: text.rstrip("/"))


class EtcdUnusable(StoreError):
    """etcd cannot be asked as it was said, is too old, or holds what podfit did not write."""


class EtcdOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`servers` are URLs, `http://HOST:PORT` or `https://HOST:PORT`, of members of one cluster."""

    servers: Annotated[
        tuple[str, ...],
        Option("URLs of etcd, separated by commas.", flag="etcd-servers", usual="a file in the data directory"),
    ]
    ca_file: Annotated[Path | None, Option("Who signed etcd's certificates.", flag="etcd-cafile")] = None
    cert_file: Annotated[Path | None, Option("Certificate to show to etcd.", flag="etcd-certfile")] = None
    key_file: Annotated[Path | None, Option("Its key.", flag="etcd-keyfile")] = None
    prefix: Annotated[str, Option("Where in etcd the keys are.", flag="etcd-prefix", unit=_PREFIX)] = PREFIX

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
