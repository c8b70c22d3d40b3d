"""How a server is reached (proxy, name, headers), its timeouts, and the errors when it does not answer."""

from urllib.parse import quote, urlencode

import msgspec

from podfit.net.wire import Request

CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
_PATH_SAFE = "/%:@!$&'()*+,;=~"  # what a decoded path may still contain as it is


class Unreachable(ConnectionError):
    """The server did not answer, or stopped in the middle; what became of the request is not known."""


class ConnectionRoute(msgspec.Struct, frozen=True):
    """`proxy` is the URL of one that carries the connection (CONNECT); `server_name` the name that the certificate is
    to have where it is not the address's; `headers` go with every request, and names may repeat.
    """

    proxy: str = ""
    server_name: str = ""
    headers: tuple[tuple[str, str], ...] = ()


DIRECT = ConnectionRoute()


def target_of(request: Request) -> str:
    """Path and query as they go on the wire."""
    path = quote(request.path, safe=_PATH_SAFE)
    if not request.query:
        return path
    return f"{path}?{urlencode([(name, value) for name, values in request.query.items() for value in values])}"
