"""Request-header authentication: requests that the API server's front proxy passes on name their user in headers. The
ConfigMap `extension-apiserver-authentication` says which certificate to trust.
"""

from collections.abc import Iterator
from urllib.parse import unquote

import msgspec

from podfit.api.core.v1.config.types import ConfigMap
from podfit.client.delegated import DelegatedAccess, authenticated
from podfit.client.rest import Client
from podfit.net.wire import Identity, Request
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
    """Says who asks by the front proxy's headers, else as `DelegatedAccess` does."""

    def __init__(self, told: FrontProxyConfig, others: DelegatedAccess) -> None:
        self._told, self._others = told, others
        self._proxies, self._clients = Issuers(told.proxies), Issuers(told.clients)

    async def identify(self, request: Request) -> Identity | None:
        """None for nobody who is known."""
        shown = request.peer_certificate
        if shown is None:
            return await self._others.identify(request)
        is_proxy = self._proxies.issued(shown) and self._is_allowed(shown)
        if is_proxy and (named := _named(self._told, request)) is not None:
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


def _named(told: FrontProxyConfig, request: Request) -> Identity | None:
    """A value is a header: what a group is called may have a comma in it."""
    user = next(iter(_values(request, told.user_headers)), "")
    if not user:
        return None
    extra = {
        unquote(name.removeprefix(prefix)).lower(): request.values_of(name)
        for prefix in told.extra_prefixes
        for name in request.headers
        if name.startswith(prefix) and name != prefix
    }
    return authenticated(Identity(user, tuple(_values(request, told.group_headers)), extra=extra))


def _values(request: Request, headers: tuple[str, ...]) -> Iterator[str]:
    return (value for name in headers for value in request.values_of(name) if value.strip())


def _listed(data: dict[str, str], key: str) -> tuple[str, ...]:
    """What is no list of names counts as none."""
    try:
        return msgspec.json.decode(data.get(key, "[]"), type=tuple[str, ...])
    except msgspec.DecodeError:
        return ()


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
