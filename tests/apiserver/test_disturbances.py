"""What others do meanwhile: writers that are quicker, watchers that are slower, a store that cannot."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import MERGE_PATCH
from podfit.apiserver.handlers.write_attempts import ATTEMPTS
from podfit.store import hub
from podfit.store.protocol import StoreUnavailable
from support.clock import at_rest
from support.eventually import PATIENCE
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def send(server: Server, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), content_type=kind)
    return document(await answer.read()) | {"http": answer.status}


@pytest.fixture
async def disturb(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """`disturb("update", 2)`: someone else relabels the object just before each of the next two updates."""
    store = server.context.store

    def arrange(call: str, times: int) -> None:
        original: Callable[..., Awaitable[Any]] = getattr(store, call)
        update = store.update
        left = times

        async def late(key: str, *arguments: Any, expected: int, **more: Any) -> Any:
            nonlocal left
            if left:
                left -= 1
                record = await store.get(key)
                assert record is not None
                labels = b'"labels":{"seen":"%d"},"name"' % left
                other = record.value.replace(b'"labels":{},', b"").replace(b'"name"', labels, 1)
                await update(key, other, expected=record.mod_revision)
            return await original(key, *arguments, expected=expected, **more)

        monkeypatch.setattr(store, call, late)

    return arrange


async def test_what_names_no_version_is_done_on_what_the_other_left(
    server: Server, disturb: Callable[[str, int], None]
) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a"}})
    disturb("update", 2)
    patched = await send(server, "PATCH", f"{MAPS}/a", {"data": {"k": "1"}}, MERGE_PATCH)
    assert (patched["http"], patched["data"], patched["metadata"]["labels"]) == (200, {"k": "1"}, {"seen": "0"})
    disturb("update", 1)
    put = await send(server, "PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
    assert (put["http"], put["data"], put["metadata"].get("labels")) == (200, {"k": "2"}, None)


@pytest.mark.parametrize(("method", "kind"), [("PUT", "application/json"), ("PATCH", MERGE_PATCH)])
async def test_what_names_a_version_is_a_conflict(
    server: Server, disturb: Callable[[str, int], None], method: str, kind: str
) -> None:
    made = await send(server, "POST", MAPS, {"metadata": {"name": "a"}})
    disturb("update", 1)
    body = {"metadata": {"name": "a", "resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"k": "1"}}
    assert (await send(server, method, f"{MAPS}/a", body, kind))["reason"] == "Conflict"


async def test_who_is_never_left_alone_gives_up(server: Server, disturb: Callable[[str, int], None]) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a"}})
    disturb("update", ATTEMPTS)
    refused = await send(server, "PATCH", f"{MAPS}/a", {"data": {"k": "1"}}, MERGE_PATCH)
    assert (refused["http"], refused["reason"]) == (409, "Conflict")


async def test_a_pod_is_bound_although_its_status_was_written(
    server: Server, disturb: Callable[[str, int], None]
) -> None:
    await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    disturb("update", 1)
    assert (await send(server, "POST", f"{PODS}/p/binding", {"target": {"name": "n1"}}))["http"] == 201
    assert (await send(server, "GET", f"{PODS}/p"))["metadata"]["labels"] == {"seen": "0"}


@pytest.mark.parametrize("path", [f"{MAPS}/a", MAPS])
async def test_a_deletion_takes_what_the_other_wrote(
    server: Server, disturb: Callable[[str, int], None], path: str
) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a"}})
    disturb("delete", 1)
    assert (await send(server, "DELETE", path))["http"] == 200
    assert (await send(server, "GET", f"{MAPS}/a"))["http"] == 404


async def test_many_at_once_lose_nothing(server: Server) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a"}})
    patches = [send(server, "PATCH", f"{MAPS}/a", {"data": {f"k{n}": "1"}}, MERGE_PATCH) for n in range(ATTEMPTS)]
    assert {answer["http"] for answer in await asyncio.gather(*patches)} == {200}
    assert len((await send(server, "GET", f"{MAPS}/a"))["data"]) == ATTEMPTS


@pytest.mark.parametrize(
    ("call", "method", "path", "body"),
    [
        ("get", "GET", f"{MAPS}/a", None),
        ("list", "GET", MAPS, None),
        ("list", "GET", f"{MAPS}?watch=1", None),
        ("create", "POST", MAPS, {"metadata": {"name": "b"}}),
        ("update", "PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}}),
        ("delete", "DELETE", f"{MAPS}/a", None),
        ("delete", "DELETE", MAPS, None),
    ],
)
async def test_what_the_store_cannot_do_is_worth_another_try(
    server: Server, monkeypatch: pytest.MonkeyPatch, call: str, method: str, path: str, body: Any
) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a"}})

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("not stored: no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(server.context.store, call, fail)
        answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode())
        status = document(await answer.read())
    assert (answer.status, status["reason"], answer.headers["retry-after"]) == (503, "ServiceUnavailable", "1")
    assert "no space left" in status["message"]
    assert (await send(server, method, path.partition("?")[0], body))["http"] < 300


async def test_a_watch_of_a_store_that_closes_ends(server: Server) -> None:
    answer = await server.ask("GET", f"{MAPS}?watch=1&resourceVersion={server.context.store.revision}")
    assert not isinstance(answer.body, bytes)
    reading = asyncio.ensure_future(answer.read())
    await at_rest()
    await server.context.store.close()
    assert await asyncio.wait_for(reading, 5 * PATIENCE) == b""


async def test_a_slow_watcher_is_let_go_and_a_quick_one_stays(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEHIND", 4 * hub.OVERHEAD)
    since = server.context.store.revision
    slow, quick = [await server.ask("GET", f"{MAPS}?watch=1&resourceVersion={since}") for _ in range(2)]
    assert not isinstance(quick.body, bytes)
    names = []
    for number in range(8):
        await send(server, "POST", MAPS, {"metadata": {"name": f"m{number}"}})
        names.append(document(await asyncio.wait_for(anext(quick.body), 5))["object"]["metadata"]["name"])
    assert names == [f"m{number}" for number in range(8)]
    assert len((await asyncio.wait_for(slow.read(), 5)).splitlines()) < 8, "the rest is for the client to list again"
