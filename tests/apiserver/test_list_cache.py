"""Lists whose bytes are kept: an answer is never older than the store, and what is kept is bounded."""

import json
from typing import Any

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.registry import info_for
from podfit.apiserver.registry import list_cache
from podfit.apiserver.registry.list_cache import FEW, ListCache
from podfit.store.protocol import Record
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
INFO = info_for(ConfigMap)
HEAD = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":['


def records(count: int, size: int = 10) -> list[Record]:
    start = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{'
    return [
        Record(f"/{number}", start + b'"name":"%d"},"data":{"k":"%s"}}' % (number, b"x" * size), 1, number + 1)
        for number in range(count)
    ]


async def listing(server: Server, query: str = "") -> dict[str, Any]:
    return document(await (await server.ask("GET", MAPS + query)).read())


async def test_a_list_follows_every_write(server: Server) -> None:
    for number in range(FEW + 5):
        await server.ask("POST", MAPS, json.dumps({"metadata": {"name": f"m{number:02}"}}).encode())
    first, again = await listing(server), await listing(server)
    assert first == again
    await server.ask("PATCH", f"{MAPS}/m03", b'{"data":{"k":"v"}}', content_type="application/merge-patch+json")
    changed = await listing(server)
    assert {item["metadata"]["name"]: item.get("data") for item in changed["items"]}["m03"] == {"k": "v"}
    assert int(changed["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    await server.ask("DELETE", f"{MAPS}/m04")
    assert [item["metadata"]["name"] for item in (await listing(server))["items"]].count("m04") == 0
    elsewhere = json.dumps({"metadata": {"name": "n1"}}).encode()
    await server.ask("POST", "/api/v1/nodes", elsewhere)
    later = await listing(server)
    assert later["metadata"]["resourceVersion"] == str(server.context.store.revision)


async def test_pages_are_kept_apart(server: Server) -> None:
    for number in range(2 * FEW):
        await server.ask("POST", MAPS, json.dumps({"metadata": {"name": f"m{number:02}"}}).encode())
    for _ in range(2):
        first = await listing(server, f"?limit={FEW}")
        rest = await listing(server, f"?limit={FEW}&continue={first['metadata']['continue']}")
        names = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
        assert names == sorted(names)
        assert len(names) == 2 * FEW


def test_the_same_records_give_the_same_bytes() -> None:
    lists, found = ListCache(), records(FEW)
    body = lists.body(INFO, "all", found, HEAD)
    assert lists.body(INFO, "all", list(found), HEAD) is body
    assert isinstance(body, bytes)
    assert json.loads(body)["items"][3]["metadata"] == {"resourceVersion": "4", "name": "3"}
    assert lists.body(INFO, "all", found, HEAD.replace(b"{}", b'{"a":1}')) != body


def test_what_is_kept_is_bounded() -> None:
    lists = ListCache()
    for number in range(20):
        lists.body(INFO, str(number), records(FEW, 40_000), HEAD)
        assert lists._size <= list_cache.KEPT
    assert lists._size > list_cache.KEPT // 2
