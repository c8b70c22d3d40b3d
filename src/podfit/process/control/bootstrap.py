"""A bootstrap token: with it a machine that nobody knows may ask for a node's certificate, for a while."""

import secrets
import string
from datetime import timedelta

from msgspec.structs import replace

from podfit.api.core.v1.config.types import Secret
from podfit.api.core.v1.services.types import Endpoints
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.kubeconfig import Access
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.times import format_time
from podfit.net.addresses import is_loopback_url
from podfit.process.listening import url

NAMESPACE, TYPE, PREFIX = "kube-system", "bootstrap.kubernetes.io/token", "bootstrap-token-"
GROUP = "system:bootstrappers:podfit:default-node-token"
"""To which the default roles give what joining needs: to ask for a client certificate, and its approval."""
_LETTERS = string.ascii_lowercase + string.digits


async def create_token(client: Client, clock: Clock, *, seconds: float, description: str) -> str:
    """`ID.SECRET`. Raises ApiError."""
    identifier, secret = _random(6), _random(16)
    data = {
        "token-id": identifier,
        "token-secret": secret,
        "auth-extra-groups": GROUP,
        "usage-bootstrap-authentication": "true",
        "description": description,
        "expiration": format_time(clock.now() + timedelta(seconds=seconds)),
    }
    await client.create(
        Secret(
            metadata=ObjectMeta(name=PREFIX + identifier, namespace=NAMESPACE),
            type=TYPE,
            data={name: value.encode() for name, value in data.items() if value},
        )
    )
    return f"{identifier}.{secret}"


async def bootstrap_access(client: Client, access: Access, token: str, *, server: str = "") -> Access:
    """What a machine joins with: where the API server is for others, who vouches for it, and the token."""
    server = server or access.server
    if is_loopback_url(server):
        server = await _advertised(client) or server
    return replace(access, server=server, token=token, certificate=None, key=None, token_file=None, plugin=None)


async def _advertised(client: Client) -> str:
    """Where the service `kubernetes` leads; empty when that is not told."""
    for subset in (await client.get(Endpoints, "kubernetes", "default")).subsets:
        for address in subset.addresses:
            for port in subset.ports:
                return url(address.ip, port.port)
    return ""


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
