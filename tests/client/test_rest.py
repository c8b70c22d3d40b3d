"""Every test runs twice: in the process, and over HTTPS to a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.resource import dynamic
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.transport import Https, Local, Transport
from podfit.client.watch_events import EVENTS, Unreadable, WatchEvent, event_of
from podfit.core.errors import ApiError
from podfit.net.authority import Authority
from podfit.net.http_client import HttpsClient
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import client_context, server_context
from podfit.net.wire import Identity, Request, Response
from support.faulty_server import FaultyServer


class Scripted:
    """Answers what it is told to, or else what the server does, and remembers the last request."""

    def __init__(self, api: FaultyServer) -> None:
        self.api = api
        self.answer: Response | None = None
        self.last = Request("", "")

    async def __call__(self, request: Request) -> Response:
        self.last = request
        return self.answer or await self.api(request)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    directory: Path = tmp_path_factory.mktemp("pki")
    return Authority.load(directory, clock=SystemClock())


@pytest.fixture
def server(api: FaultyServer) -> Scripted:
    return Scripted(api)


@pytest.fixture(params=["local", "https"])
async def client(request: pytest.FixtureRequest, server: Scripted, authority: Authority) -> AsyncIterator[Client]:
    if request.param == "local":
        yield Client(Local(server, Identity("tester")), user_agent="tests")
        return
    listener = HttpsServer(server, server_context(authority.server("server", hosts=("127.0.0.1",))))
    port = await listener.listen("127.0.0.1", 0)
    tls = client_context(authorities=authority.certificate)
    transport: Transport = Https(HttpsClient(f"https://127.0.0.1:{port}", tls, token=lambda: "secret"))
    client = Client(transport, user_agent="tests")
    yield client
    await client.close()
    await listener.close(deadline=1)


def config(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


async def test_an_objects_life(client: Client, server: Scripted) -> None:
    created = await client.create(config("a", k="1"))
    assert created.metadata.resource_version == str(server.api.revision)
    assert server.last.headers["user-agent"] == "tests"
    assert await client.get(ConfigMap, "a", "default") == created
    patched = await client.patch(ConfigMap, "a", "default", {"data": {"k": "2"}}, content_type=MERGE_PATCH)
    assert patched.data == {"k": "2"}
    assert server.last.headers["content-type"] == MERGE_PATCH
    await client.delete(ConfigMap, "a", "default", grace=5, uid=created.metadata.uid)
    assert json.loads(server.last.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": created.metadata.uid},
    }
    with pytest.raises(ApiError) as refusal:
        await client.get(ConfigMap, "a", "default")
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (
        404,
        "NotFound",
        'configmaps "a" not found',
    )
    assert refusal.value.details == {"name": "a", "kind": "configmaps"}


async def test_lists_in_pages_with_selectors(client: Client, server: Scripted) -> None:
    for name in "abc":
        await server.api.put(name, labels={"a": "b"})
    await server.api.put("0")
    page = await client.list(ConfigMap, "default", labels="a=b,c!=d", fields="metadata.name!=a", limit=1)
    assert [obj.metadata.name for obj in page.items] == ["b"]
    assert {name: server.last.param(name) for name in server.last.query} == {
        "labelSelector": "a=b,c!=d",
        "fieldSelector": "metadata.name!=a",
        "limit": "1",
    }
    more = {"labels": "a=b,c!=d", "fields": "metadata.name!=a"}
    page = await client.list(ConfigMap, "default", limit=1, continue_=page.continue_, **more)
    assert [obj.metadata.name for obj in page.items] == ["c"]
    assert (page.continue_, page.resource_version) == ("", str(server.api.revision))


async def test_a_list_of_nothing_may_be_null(client: Client, server: Scripted) -> None:
    server.answer = Response(200, {}, b'{"metadata": {"resourceVersion": "5"}, "items": null}')
    assert (await client.list(ConfigMap)).items == ()


async def test_watches_until_it_hangs_up(client: Client, server: Scripted) -> None:
    before = server.api.revision
    await server.api.put("a")
    seen: list[WatchEvent[ConfigMap]] = []
    watch = client.watch(ConfigMap, "default", resource_version=str(before))
    async for event in watch:
        seen.append(event)
        if len(seen) == 1:
            await server.api.put("a", data={"k": "x" * 100_000})
        if len(seen) == 2:
            server.api.cut()
    assert [(event.type, event.object.metadata.resource_version) for event in seen] == [
        ("ADDED", str(before + 1)),
        ("MODIFIED", str(before + 2)),
    ]
    assert len(seen[1].object.data["k"]) == 100_000


async def test_history_that_is_gone_raises_410(client: Client, server: Scripted) -> None:
    await server.api.compact()
    with pytest.raises(ApiError) as gone:
        await anext(client.watch(ConfigMap, resource_version="1"))
    assert (gone.value.code, gone.value.reason) == (410, "Expired")


@pytest.mark.parametrize("cut", [1, 7, 1000])
async def test_events_may_be_cut_anywhere(client: Client, server: Scripted, cut: int) -> None:
    lines = b"".join(
        json.dumps({"type": "ADDED", "object": {"metadata": {"name": f"é{i}"}}}, ensure_ascii=False).encode() + b"\n"
        for i in range(20)
    )

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(lines), cut):
            yield lines[start : start + cut]

    server.answer = Response(200, {}, pieces())
    names = [event.object.metadata.name async for event in client.watch(ConfigMap, resource_version="1")]
    assert names == [f"é{i}" for i in range(20)]


async def test_subresources_binding_and_dry_run(client: Client, server: Scripted) -> None:
    server.answer = Response(200, {}, b"{}")
    await client.update_status(config("a"))
    assert (server.last.method, server.last.path) == ("PUT", "/api/v1/namespaces/default/configmaps/a/status")
    await client.patch(ConfigMap, "a", "default", b"[]", subresource="resize", dry_run=True)
    assert (server.last.path[-7:], server.last.param("dryRun")) == ("/resize", "All")
    await client.bind("default", "web", "n1", uid="u1")
    assert server.last.path == "/api/v1/namespaces/default/pods/web/binding"
    assert json.loads(server.last.body)["target"] == {"kind": "Node", "apiVersion": "v1", "name": "n1"}
    await client.create_in(dynamic("a.io", "v1", "things"), {"metadata": {"namespace": "n"}})
    assert (server.last.method, server.last.path) == ("POST", "/apis/a.io/v1/namespaces/n/things")
    await client.get(dynamic("a.io", "v1", "things", namespaced=False), "x%2F y", "ignored")
    assert server.last.path == "/apis/a.io/v1/things/x%2F y"


@pytest.mark.parametrize("answer", [b"not json", b"[]", b'{"metadata": 3}'])
async def test_an_answer_that_is_none_is_a_connection_error(client: Client, server: Scripted, answer: bytes) -> None:
    server.answer = Response(200, {}, answer)
    with pytest.raises(Unreadable, match="the server's answer is not a ConfigMap"):
        await client.get(ConfigMap, "a", "default")


@pytest.mark.parametrize(("body", "message"), [(b"go away", "go away"), (b"", "HTTP status 502"), (b"[]", "[]")])
async def test_a_refusal_without_a_status_keeps_its_text(
    client: Client, server: Scripted, body: bytes, message: str
) -> None:
    server.answer = Response(502, {}, body)
    with pytest.raises(ApiError) as refusal:
        await client.get(ConfigMap, "a", "default")
    assert (refusal.value.code, refusal.value.message) == (502, message)


async def test_hanging_up_closes_the_servers_stream(client: Client, server: Scripted) -> None:
    closed = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b'{"type": "ADDED", "object": {}}\n'
            await asyncio.Event().wait()
        finally:
            closed.set()

    server.answer = Response(200, {}, body())
    watch = client.watch(ConfigMap, resource_version="1")
    await anext(watch)
    await watch.aclose()
    await asyncio.wait_for(closed.wait(), 2)


def test_all_who_watch_the_same_are_told_one_event() -> None:
    line = codec.encode({"type": "MODIFIED", "object": ConfigMap(data={"a": "b"})})
    event = event_of(line, ConfigMap)
    assert event_of(bytes(bytearray(line)), ConfigMap) is event
    assert (event.type, event.object.data) == ("MODIFIED", {"a": "b"})
    refused = codec.encode({"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "old"}})
    for _ in range(2):
        with pytest.raises(ApiError, match="old"):
            event_of(refused, ConfigMap)
    with pytest.raises(Unreadable):
        event_of(b"{", ConfigMap)


def test_no_more_than_so_many_bytes_of_events_are_kept() -> None:
    objects = [ConfigMap(data={"n": f"{number:08}" * 1000}) for number in range(2 * EVENTS // 8000)]
    lines = [codec.encode({"type": "ADDED", "object": obj}) for obj in objects]
    events = [event_of(line, ConfigMap) for line in lines]
    assert event_of(lines[-1], ConfigMap) is events[-1]
    assert event_of(lines[0], ConfigMap) is not events[0]
