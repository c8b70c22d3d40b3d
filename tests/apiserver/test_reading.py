"""Lists and watches: which moment they show, how they go on, and what a selector makes of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import MERGE_PATCH
from podfit.apiserver.handlers.watch import BOOKMARK_SECONDS
from podfit.apiserver.handlers.watch_lines import INITIAL_END
from support.clock import FakeClock
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def put(server: Server, name: str, **labels: str) -> str:
    """Create or relabel; answers the version."""
    body = json.dumps({"metadata": {"name": name, "labels": labels or None}}).encode()
    answer = await server.ask("PATCH", f"{MAPS}/{name}", body, content_type=MERGE_PATCH)
    if answer.status == 404:
        answer = await server.ask("POST", MAPS, body)
    version: str = document(await answer.read())["metadata"]["resourceVersion"]
    return version


async def listed(server: Server, query: str = "") -> dict[str, Any]:
    return document(await (await server.ask("GET", f"{MAPS}?{query}")).read())


def names(listing: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


class Watching:
    """A watch that is read an event at a time."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body = body
        self._lines: list[bytes] = []

    async def next(self) -> dict[str, Any]:
        while not self._lines:
            self._lines = (await asyncio.wait_for(anext(self._body), 5)).splitlines()
        return document(self._lines.pop(0))

    async def brief(self, count: int) -> list[str]:
        """`ADDED a` for each of the next events."""
        events = [await self.next() for _ in range(count)]
        return [f"{event['type']} {event['object']['metadata'].get('name', '')}".strip() for event in events]

    async def ended(self) -> bool:
        try:
            await asyncio.wait_for(anext(self._body), 5)
        except StopAsyncIteration:
            return True
        return False


async def watch(server: Server, query: str = "", *, accept: str = "application/json") -> Watching:
    answer = await server.ask("GET", f"{MAPS}?watch=1&{query}", accept=accept)
    assert answer.status == 200
    assert not isinstance(answer.body, bytes), answer.body
    return Watching(answer.body)


def clock(server: Server) -> FakeClock:
    assert isinstance(server.context.clock, FakeClock)
    return server.context.clock


async def test_a_list_in_parts_shows_one_moment(server: Server) -> None:
    for name in "abcde":
        await put(server, name)
    first = await listed(server, "limit=2")
    await put(server, "bb")
    await server.ask("DELETE", f"{MAPS}/d")
    second = await listed(server, f"limit=2&continue={first['metadata']['continue']}")
    third = await listed(server, f"continue={second['metadata']['continue']}")
    assert [names(page) for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [3, 1, None]
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1


async def test_a_selected_list_in_parts(server: Server) -> None:
    for name, colour in zip("abcde", ("red", "blue", "red", "blue", "red"), strict=True):
        await put(server, name, colour=colour)
    first = await listed(server, "limit=2&labelSelector=colour=red")
    second = await listed(server, f"limit=2&labelSelector=colour=red&continue={first['metadata']['continue']}")
    assert (names(first), names(second)) == (["a", "c"], ["e"])
    assert "remainingItemCount" not in first["metadata"], "how many more match is not known"


async def test_a_token_whose_moment_is_forgotten_has_expired(server: Server) -> None:
    for name in "abc":
        await put(server, name)
    token = (await listed(server, "limit=1"))["metadata"]["continue"]
    await put(server, "d")
    await server.context.store.compact(server.context.store.revision)
    answer = await server.ask("GET", f"{MAPS}?limit=1&continue={token}")
    assert (answer.status, document(await answer.read())["reason"]) == (410, "Expired")


async def test_versions_of_a_list(server: Server) -> None:
    old = await put(server, "a")
    new = await put(server, "b")
    assert names(await listed(server, f"resourceVersion={old}&resourceVersionMatch=Exact")) == ["a"]
    assert names(await listed(server, f"resourceVersion={old}&resourceVersionMatch=NotOlderThan")) == ["a", "b"]
    assert names(await listed(server, f"resourceVersion={old}")) == ["a", "b"]
    assert names(await listed(server, f"resourceVersion={old}&limit=5")) == ["a"]
    assert names(await listed(server, "resourceVersion=0")) == ["a", "b"]
    future = await server.ask("GET", f"{MAPS}?resourceVersion={int(new) + 5}")
    refused = document(await future.read())
    assert (future.status, refused["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("labelSelector=colour=red", ["a"]),
        ("labelSelector=colour==red", ["a"]),
        ("labelSelector=colour!=red", ["b", "c"]),
        ("labelSelector=colour", ["a", "b"]),
        ("labelSelector=!colour", ["c"]),
        ("labelSelector=colour in (red,blue)", ["a", "b"]),
        ("labelSelector=colour notin (red)", ["b", "c"]),
        ("labelSelector=colour=red,size=1", []),
        ("fieldSelector=metadata.name=b", ["b"]),
        ("fieldSelector=metadata.name!=b", ["a", "c"]),
        ("fieldSelector=metadata.namespace=other", []),
        ("labelSelector=colour&fieldSelector=metadata.name=a", ["a"]),
    ],
)
async def test_selectors(server: Server, selector: str, expected: list[str]) -> None:
    await put(server, "a", colour="red")
    await put(server, "b", colour="blue")
    await put(server, "c")
    assert names(await listed(server, selector)) == expected


async def test_items_carry_no_kind_and_single_objects_do(server: Server) -> None:
    await put(server, "a")
    item = (await listed(server))["items"][0]
    alone = document(await (await server.ask("GET", f"{MAPS}/a")).read())
    assert alone == {"kind": "ConfigMap", "apiVersion": "v1", **item}


async def test_a_watch_goes_on_from_a_version(server: Server) -> None:
    version = await put(server, "a")
    await put(server, "b")
    await server.ask("DELETE", f"{MAPS}/a")
    watching = await watch(server, f"resourceVersion={version}")
    await put(server, "c")
    assert await watching.brief(3) == ["ADDED b", "DELETED a", "ADDED c"]


async def test_a_watch_from_nothing_begins_with_what_is_there(server: Server) -> None:
    await put(server, "a")
    for query in ("", "resourceVersion=0"):
        watching = await watch(server, query)
        assert await watching.brief(1) == ["ADDED a"]


async def test_a_deletion_carries_its_own_version(server: Server) -> None:
    version = await put(server, "a")
    await server.ask("DELETE", f"{MAPS}/a")
    event = await (await watch(server, f"resourceVersion={version}")).next()
    assert int(event["object"]["metadata"]["resourceVersion"]) == int(version) + 1


@pytest.mark.parametrize("fields", ["", "&fieldSelector=metadata.name=a"])
async def test_a_selector_makes_a_collection_of_its_own(server: Server, fields: str) -> None:
    version = await put(server, "other")
    watching = await watch(server, f"resourceVersion={version}&labelSelector=colour=red{fields}")
    for colour in ("blue", "red", "red", "blue", "red"):
        await put(server, "a", colour=colour, nonce=str(server.context.store.revision))
    await server.ask("DELETE", f"{MAPS}/a")
    assert await watching.brief(5) == ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "DELETED a"]


async def test_pods_of_a_node(server: Server) -> None:
    """What a kubelet watches: a pod appears when it is bound."""
    path = "/api/v1/namespaces/default/pods"
    answer = await server.ask("GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n1")
    assert not isinstance(answer.body, bytes)
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    for name in ("p", "q"):
        await server.ask("POST", path, json.dumps({"metadata": {"name": name}, "spec": spec}).encode())
    await server.ask("POST", f"{path}/q/binding", b'{"target":{"name":"n1"}}')
    assert await Watching(answer.body).brief(1) == ["ADDED q"]


async def test_bookmarks_say_from_where_to_go_on(server: Server) -> None:
    watching = await watch(server, "allowWatchBookmarks=true&timeoutSeconds=90")
    await server.namespace("elsewhere")
    version = await put(server, "a")
    assert await watching.brief(1) == ["ADDED a"]
    bookmark = asyncio.ensure_future(watching.next())
    await clock(server).advance(BOOKMARK_SECONDS)
    event = await bookmark
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"] == {"resourceVersion": version}
    last = asyncio.ensure_future(watching.next())
    await clock(server).advance(30)
    assert (await last)["type"] == "BOOKMARK"
    assert await watching.ended()


async def test_without_bookmarks_a_watch_just_ends(server: Server) -> None:
    watching = await watch(server, "timeoutSeconds=10")
    ended = asyncio.ensure_future(watching.ended())
    await clock(server).advance(10)
    assert await ended
    assert clock(server).pending.count(10.0) == 0


async def test_initial_events_end_with_a_bookmark(server: Server) -> None:
    version = await put(server, "a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watching = await watch(server, query)
    assert await watching.brief(1) == ["ADDED a"]
    end = (await watching.next())["object"]["metadata"]
    assert end == {"resourceVersion": version, "annotations": INITIAL_END}
    refused = await server.ask("GET", f"{MAPS}?watch=1&sendInitialEvents=true")
    assert refused.status == 422


async def test_a_watch_of_forgotten_history_is_told_so(server: Server) -> None:
    version = await put(server, "a")
    await put(server, "b")
    await put(server, "c")
    await server.context.store.compact(server.context.store.revision)
    answer = await server.ask("GET", f"{MAPS}?watch=1&resourceVersion={version}")
    event = document(await answer.read())
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_many_watchers_get_the_very_same_bytes(server: Server) -> None:
    answers = [await server.ask("GET", f"{MAPS}?watch=1&resourceVersion=1") for _ in range(3)]
    await put(server, "a")
    lines = [await anext(answer.body) for answer in answers if not isinstance(answer.body, bytes)]
    assert len(lines) == 3
    assert len(set(lines)) == 1


async def test_a_watch_that_is_closed_lets_go_of_the_store_and_the_clock(server: Server) -> None:
    before = clock(server).pending
    watching = await watch(server, "allowWatchBookmarks=true")
    assert len(clock(server).pending) == len(before) + 2
    await watching._body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
    assert clock(server).pending == before


async def test_tables(server: Server) -> None:
    await put(server, "a", colour="red")
    answer = await server.ask("GET", MAPS, accept=TABLE)
    table = document(await answer.read())
    assert [definition["name"] for definition in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"] for row in table["rows"]] == [["a", 0, "0s"]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    for include, kind in (("Object", "ConfigMap"), ("None", None)):
        answer = await server.ask("GET", f"{MAPS}/a?includeObject={include}", accept=TABLE)
        obj = document(await answer.read())["rows"][0]["object"]
        assert (obj and obj["kind"]) == kind
    assert (await server.ask("GET", f"{MAPS}?includeObject=Some", accept=TABLE)).status == 400


async def test_a_watch_of_tables_names_its_columns_once(server: Server) -> None:
    await put(server, "a")
    watching = await watch(server, accept=TABLE)
    await put(server, "b")
    tables = [(await watching.next())["object"] for _ in range(2)]
    assert [table["rows"][0]["cells"][0] for table in tables] == ["a", "b"]
    assert [table["columnDefinitions"] is None for table in tables] == [False, True]
