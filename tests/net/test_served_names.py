"""What a server is called, asked of itself."""

from pathlib import Path

import pytest

from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.reachability import Unreachable
from podfit.net.served_names import names_served
from podfit.net.system import SystemClock
from podfit.net.tls import client_context, server_context
from podfit.net.wire import Request, Response


async def nothing(_: Request) -> Response:
    return Response(404)


async def test_the_names_of_a_certificate_and_of_the_url(tmp_path: Path) -> None:
    authority = Authority.load(tmp_path, clock=SystemClock())
    hosts = ("127.0.0.1", "api.example.com", "10.77.0.1")
    server = HttpsServer(nothing, server_context(authority.server("given", hosts=hosts)))
    port = await server.listen("127.0.0.1", 0)
    tls = client_context(authorities=authority.certificate)
    try:
        assert await names_served(f"https://127.0.0.1:{port}", tls) == {*hosts}
        assert await names_served(f"https://127.0.0.1:{port}", tls, server_name="api.example.com") == {*hosts}
    finally:
        await server.close(deadline=1.0)
    with pytest.raises(Unreachable, match=f"https://127.0.0.1:{port}"):
        await names_served(f"https://127.0.0.1:{port}", tls)
