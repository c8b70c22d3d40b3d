"""Request-header authentication: requests that the API server's front proxy passes on name their user in headers. The
ConfigMap `extension-apiserver-authentication` says which certificate to trust.
"""

from collections.abc import Iterator

import msgspec

from podfit.api.core.v1.config.types import ConfigMap
from podfit.client.delegated import DelegatedAccess
from podfit.client.rest import Client
from podfit.net.wire import Headers, Identity, Request
from podfit.net.x509 import Issuers, certificate_identity

NAME, NAMESPACE = "extension-apiserver-authentication", "kube-system"


class FrontProxyConfig(msgspec.Struct, frozen=True):
    """What the ConfigMap says; bundles are PEM, names of headers lower case. Without `names` any certificate does."""

    clients: bytes
    proxies: bytes
    names: tuple[str, ...]
    user_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    @property
    def everybody(self) -> bytes:
        """Who may have signed what a server is shown."""
        return self.clients + b"\n" + self.proxies


async def believed(client: Client) -> FrontProxyConfig:
    """Needs the role `extension-apiserver-authentication-reader`. Raises ApiError, ConnectionError."""
    data = (await client.get(ConfigMap, NAME, NAMESPACE)).data
    return FrontProxyConfig(
        clients=data.get("client-ca-file", "").encode(),
        proxies=data.get("requestheader-client-ca-file", "").encode(),
        names=_listed(data, "requestheader-allowed-names"),
        user_headers=_lower(_listed(data, "requestheader-username-headers")),
        group_headers=_lower(_listed(data, "requestheader-group-headers")),
        extra_prefixes=_lower(_listed(data, "requestheader-extra-headers-prefix")),
    )


class FrontProxyAccess:
    """By the front proxy's headers, else as `DelegatedAccess` does."""

    def __init__(self, told: FrontProxyConfig, others: DelegatedAccess) -> None:
        self._told, self._others = told, others
        self._proxies, self._clients = Issuers(told.proxies), Issuers(told.clients)

    async def identify(self, request: Request) -> Identity | None:
        """None for nobody who is known."""
        shown = request.peer_certificate
        if shown is None:
            return await self._others.identify(request)
        is_proxy = self._proxies.issued(shown) and self._is_allowed(shown)
        if is_proxy and (named := _named(self._told, request.headers)) is not None:
            return named
        if not self._clients.issued(shown):
            return None  # the front proxy's authority vouches for no users
        return await self._others.identify(request)

    def _is_allowed(self, shown: bytes) -> bool:
        try:
            found = certificate_identity(shown)
        except ValueError:
            return False
        return not self._told.names or (found is not None and found.user in self._told.names)


def _named(told: FrontProxyConfig, headers: Headers) -> Identity | None:
    user = next((headers[name] for name in told.user_headers if headers.get(name)), "")
    if not user:
        return None
    groups = [value for name in told.group_headers for value in _values(headers.get(name, ""))]
    extra = {
        name.removeprefix(prefix): tuple(_values(value))
        for prefix in told.extra_prefixes
        for name, value in headers.items()
        if name.startswith(prefix) and name != prefix
    }
    return Identity(user, tuple(groups), extra=extra)


def _values(joined: str) -> Iterator[str]:
    """Of a header that was said several times."""
    return (part.strip() for part in joined.split(",") if part.strip())


def _listed(data: dict[str, str], key: str) -> tuple[str, ...]:
    """What is no list of names counts as none."""
    try:
        return msgspec.json.decode(data.get(key, "[]"), type=tuple[str, ...])
    except msgspec.DecodeError:
        return ()


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
