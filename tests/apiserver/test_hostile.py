"""Requests made to do harm: to end the process, to fill its memory, to forge a header, to spoil what others read."""

import json
from typing import Any

import pytest

from podfit.apiserver.handlers.answers import LONGEST_WARNINGS
from podfit.apiserver.handlers.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from podfit.apiserver.request.documents import DEEPEST
from support.clock import FakeClock
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
YAML, TABLE = "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"
POD = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'


def nested(levels: int) -> tuple[str, str]:
    return "[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", [DEEPEST + 1, 900, 5000, 100_000])
@pytest.mark.parametrize(
    ("method", "path", "kind", "around"),
    [
        ("POST", MAPS, "application/json", '{"metadata":{"name":"b"},"x":%s}'),
        ("POST", MAPS, YAML, "%s"),
        ("POST", MAPS, YAML, "{metadata: {name: b}, x: %s}"),
        ("PATCH", f"{MAPS}/a", MERGE_PATCH, '{"x":%s}'),
        ("PATCH", f"{MAPS}/a", STRATEGIC_PATCH, '{"metadata":{"x":%s}}'),
        ("PATCH", f"{MAPS}/a", JSON_PATCH, '[{"op":"add","path":"/x","value":%s}]'),
        ("DELETE", f"{MAPS}/a", "application/json", '{"x":%s}'),
    ],
)
async def test_deep_documents_are_refused(
    server: Server, method: str, path: str, kind: str, around: str, levels: int
) -> None:
    await server.ask("POST", MAPS, b'{"metadata":{"name":"a"}}')
    for text in nested(levels):
        answer = await server.ask(method, path, (around % text).encode(), content_type=kind)
        assert (answer.status, document(await answer.read())["reason"]) == (400, "BadRequest")


async def test_a_patch_cannot_dig_deeper_step_by_step(server: Server) -> None:
    await server.ask("POST", MAPS, b'{"metadata":{"name":"a"}}')
    half = json.loads(nested(60)[1])
    steps = [{"op": "add", "path": "/x", "value": half}, {"op": "add", "path": "/x" + "/a" * 59, "value": half}]
    answer = await server.ask("PATCH", f"{MAPS}/a", json.dumps(steps).encode(), content_type=JSON_PATCH)
    assert answer.status == 400


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
        "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)),
        "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [[[*a{n - 1}]]]\n" for n in range(1, 60)),
        "&a [*a]",
        "&a {b: *a}",
        "*a",
    ],
    ids=["width", "merged width", "depth", "itself in a list", "itself in a map", "nothing"],
)
async def test_what_aliases_multiply_is_counted(server: Server, text: str) -> None:
    assert (await server.ask("POST", MAPS, text.encode(), content_type=YAML)).status in (400, 413)


async def test_ordinary_aliases_are_taken(server: Server) -> None:
    text = b"metadata: {name: a, labels: &l {app: x}, annotations: *l}"
    made = document(await (await server.ask("POST", MAPS, text, content_type=YAML)).read())
    assert made["metadata"]["labels"] == made["metadata"]["annotations"] == {"app": "x"}


async def test_warnings_forge_no_headers_and_stay_short(server: Server) -> None:
    fields = {"\r\nX-Forged: 1\x00\ud800": 1, **{f"{n:0300}": n for n in range(200)}}
    body = json.dumps({"metadata": {"name": "a"}} | fields).replace(r"\ud800", "").encode()
    warning = (await server.ask("POST", MAPS, body)).headers["warning"]
    assert warning.isprintable()
    assert "X-Forged" in warning
    assert len(warning) <= LONGEST_WARNINGS + 200


@pytest.mark.parametrize(
    "path", [f"{MAPS}/\udcff", f"{MAPS}?labelSelector=\udcff", "/\udcff", f"{PODS}/p/log?x=\udcff"]
)
async def test_what_is_not_text_is_a_bad_request(server: Server, path: str) -> None:
    answer = await server.ask("GET", path)
    assert (answer.status, document(await answer.read())["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("seconds", [2**63 - 1, 10**12, 10**17])
async def test_grace_without_end_ends(server: Server, seconds: int) -> None:
    await server.ask("POST", PODS, POD)
    await server.ask("POST", f"{PODS}/p/binding", b'{"target":{"name":"n1"}}')
    answer = await server.ask("DELETE", f"{PODS}/p", b'{"gracePeriodSeconds":%d}' % seconds)
    assert document(await answer.read())["metadata"]["deletionTimestamp"] == "2125-12-08T00:00:00Z"


TIMES = ["0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "2026-02-30T00:00:00Z", "9999-12-31T23:59:59Z"]


@pytest.mark.parametrize("time", TIMES)
async def test_a_strange_time_spoils_no_table_and_keeps_no_event(server: Server, time: str) -> None:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    event: dict[str, Any] = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "lastTimestamp": time,
        "firstTimestamp": time,
    }
    terminated = {"exitCode": 1, "startedAt": time, "finishedAt": time}
    status = {
        "startTime": time,
        "containerStatuses": [
            {
                "name": "c",
                "image": "i",
                "imageID": "",
                "ready": False,
                "restartCount": 1,
                "state": {"terminated": terminated},
                "lastState": {"terminated": terminated},
            }
        ],
    }
    created = await server.ask("POST", EVENTS, json.dumps(event).encode())
    await server.ask("POST", PODS, POD)
    await server.ask("PATCH", f"{PODS}/p/status", json.dumps({"status": status}).encode(), content_type=MERGE_PATCH)
    for path in (EVENTS, PODS):
        assert (await server.ask("GET", path, accept=TABLE)).status == 200
    assert created.status == (201 if time.endswith("9Z") else 400)  # a day or a year that there is not
    assert await there(server, f"{EVENTS}/e") == (created.status == 201)
    for _ in range(60):
        await clock.advance(300)
        await server.ask("POST", MAPS, b'{"metadata":{"generateName":"after-"}}')  # the store's thread gets a turn
        if not await there(server, f"{EVENTS}/e"):
            return
    pytest.fail("the event was never forgotten")


async def there(server: Server, path: str) -> bool:
    return (await server.ask("GET", path)).status == 200


@pytest.mark.parametrize(
    "said", [{"kind": "Pod"}, {"kind": ""}, {"apiVersion": ""}, {"kind": None}, {"apiVersion": "v2"}]
)
async def test_an_object_is_stored_as_what_it_is(server: Server, said: dict[str, Any]) -> None:
    """Readers rely on how a stored object begins, so one that lied about its kind would spoil every list it is in."""
    name = {"metadata": {"name": "a"}}
    requests = [
        ("POST", MAPS, name | said, "application/json"),
        ("POST", MAPS, name, "application/json"),
        ("PUT", f"{MAPS}/a", name | said | {"data": {"k": "1"}}, "application/json"),
        *(("PATCH", f"{MAPS}/a", said | {"data": {"k": kind}}, kind) for kind in (MERGE_PATCH, STRATEGIC_PATCH)),
    ]
    for method, path, body, kind in requests:
        await server.ask(method, path, json.dumps(body).encode(), content_type=kind)
    found = document(await (await server.ask("GET", MAPS)).read())
    one = document(await (await server.ask("GET", f"{MAPS}/a")).read())
    names = [item["metadata"]["name"] for item in found["items"]]
    assert (names, one["kind"], one["apiVersion"]) == (["a"], "ConfigMap", "v1")
