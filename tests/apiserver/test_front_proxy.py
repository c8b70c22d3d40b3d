"""What other API servers are told about who asks them, and by what they believe it."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap
from podfit.apiserver.extensions.aggregation.remote import remote_headers
from podfit.apiserver.housekeeping.extension_authentication import (
    NAME,
    NAMESPACE,
    FrontProxy,
    ProxyCertificate,
    publish,
    with_front_proxy,
)
from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.wire import Identity
from support.server import Server


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    places: list[Path] = [tmp_path_factory.mktemp(name) for name in "abc"]
    return tuple(Authority.load(place, clock=SystemClock()).certificate.decode() for place in places)


def proxy(authority: str, clients: str, name: str = "front-proxy-client") -> FrontProxy:
    return FrontProxy(ProxyCertificate(b"", b""), authority.encode(), name, clients.encode())


def test_who_asks_has_a_header_for_each_value() -> None:
    identity = Identity("eve", ("a", "b,c"), extra={"example.org/key": ("x", "y"), "plain": ("z",)})
    assert remote_headers(identity) == (
        ("X-Remote-User", "eve"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "b,c"),
        ("X-Remote-Extra-example.org%2Fkey", "x"),
        ("X-Remote-Extra-example.org%2Fkey", "y"),
        ("X-Remote-Extra-plain", "z"),
    )


def test_several_servers_are_believed(authorities: tuple[str, ...]) -> None:
    a, b, c = (authority.strip() + "\n" for authority in authorities)
    first = with_front_proxy(proxy(a, b), {})
    assert first == {
        "client-ca-file": b,
        "requestheader-client-ca-file": a,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    assert with_front_proxy(proxy(a, b), first) == first
    both = with_front_proxy(
        proxy(c, b + c, "other"), first | {"more": "stays", "requestheader-group-headers": "nonsense"}
    )
    assert both["requestheader-client-ca-file"] == a + c
    assert both["client-ca-file"] == b + c
    assert json.loads(both["requestheader-allowed-names"]) == ["front-proxy-client", "other"]
    assert json.loads(both["requestheader-group-headers"]) == ["X-Remote-Group"]
    assert both["more"] == "stays"


async def test_it_is_written_where_it_is_another(server: Server, authorities: tuple[str, ...]) -> None:
    a, b, c = authorities
    await publish(server.context, proxy(a, b))
    made = await server.client.get(ConfigMap, NAME, NAMESPACE)
    assert made.data == with_front_proxy(proxy(a, b), {})
    await publish(server.context, proxy(a, b))
    assert await server.client.get(ConfigMap, NAME, NAMESPACE) == made
    await server.client.update(replace(made, data=made.data | {"mine": "x"}))
    await publish(server.context, proxy(c, b))
    assert (await server.client.get(ConfigMap, NAME, NAMESPACE)).data == with_front_proxy(
        proxy(c, b), made.data | {"mine": "x"}
    )
