"""componentstatuses: asked when they are read, and otherwise as upstream's, which also stores none."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.net.http_server import HttpsServer
from podfit.net.wire import Request, Response
from podfit.process.control.component_health import SAID, OwnComponents, at_ports
from podfit.process.control.control_process import self_signed
from podfit.store.logged import LoggedStore
from podfit.store.memory import MemoryLog
from support.clock import at_rest
from support.etcd import free_ports
from support.golden import cases, needs
from support.rules import asked
from support.server import Server, running_server

PATH = "/api/v1/componentstatuses"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LOST = "no longer the leader"


@pytest.fixture
async def parts() -> dict[str, str]:
    """Why each does not work; a test changes it."""
    return {"controller-manager": LOST, "scheduler": ""}


@pytest.fixture
async def server(tmp_path: Path, parts: dict[str, str]) -> AsyncIterator[Server]:
    async def controllers() -> str:
        return parts["controller-manager"]

    async def scheduler() -> str:
        return parts["scheduler"]

    asked = {"scheduler": scheduler, "controller-manager": controllers}
    async with running_server(tmp_path, components=asked) as made:
        yield made


def _status(name: str, **condition: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "conditions": [{"type": "Healthy"} | condition]}


async def test_each_part_is_asked_when_it_is_read(server: Server, parts: dict[str, str]) -> None:
    """Also why a store takes no writes."""
    answer = await asked(server, "GET", PATH)
    ok = {"status": "True", "message": "ok"}
    lost = _status("controller-manager", status="False", message=LOST)
    items = [lost, _status("scheduler", **ok), _status("store", **ok)]
    assert answer.body == {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items}
    parts["controller-manager"], parts["scheduler"] = "", "it has ended"
    assert isinstance(server.context.store, LoggedStore)
    assert isinstance(server.context.store._log, MemoryLog)
    server.context.store._log.problem = "no room"
    told = (await asked(server, "GET", PATH)).body["items"]
    assert [(item["conditions"][0]["status"], item["conditions"][0]["message"]) for item in told] == [
        ("True", "ok"),
        ("False", "it has ended"),
        ("False", "no room"),
    ]


async def test_one_of_them(server: Server) -> None:
    answer = await asked(server, "GET", f"{PATH}/scheduler")
    head = {"kind": "ComponentStatus", "apiVersion": "v1"}
    assert answer.body == head | _status("scheduler", status="True", message="ok")
    answer = await asked(server, "GET", f"{PATH}/etcd-0")
    assert (answer.code, answer.message) == (404, 'componentstatuses "etcd-0" not found')


async def test_it_is_deprecated(server: Server) -> None:
    for path in (PATH, f"{PATH}/scheduler", f"{PATH}/none"):
        answer = await server.ask("GET", path)
        assert answer.headers["warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("fieldSelector=metadata.name%3Dscheduler", ["scheduler"]),
        ("fieldSelector=metadata.name!%3Dscheduler", ["controller-manager", "store"]),
        ("labelSelector=a", []),
        ("labelSelector=!a&limit=1", ["controller-manager", "scheduler", "store"]),
    ],
)
async def test_selected(server: Server, query: str, names: list[str]) -> None:
    answer = await asked(server, "GET", f"{PATH}?{query}")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == names


async def test_what_cannot_be_selected_by(server: Server) -> None:
    assert (await asked(server, "GET", f"{PATH}?fieldSelector=status%3Dx")).code == 400
    assert (await asked(server, "GET", f"{PATH}?resourceVersion=x")).code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *((method, f"{PATH}/scheduler") for method in ("PUT", "PATCH", "DELETE")),
        *((method, PATH) for method in ("POST", "DELETE")),
    ],
)
async def test_nobody_writes_them(server: Server, method: str, path: str) -> None:
    answer = await asked(server, method, path, {})
    assert (answer.code, answer.reason) == (405, "MethodNotAllowed")
    assert answer.message == "the server does not allow this method on the requested resource"


async def test_nobody_watches_them(server: Server) -> None:
    answer = await asked(server, "GET", f"{PATH}?watch=true")
    assert (answer.code, answer.message) == (405, 'watch is not supported on resources of kind "componentstatuses"')
    assert (await asked(server, "GET", "/api/v1/watch/componentstatuses")).code == 404


@needs("api/verbs.json*")
async def test_the_table_is_upstreams(server: Server, parts: dict[str, str]) -> None:
    """Its columns, and the row of a part that nobody answers for. `tests/apiserver/test_golden_api.py` leaves the case
    to this test, because which parts there are is another thing."""
    recorded = next(case for case in cases("api/verbs.json*") if case["id"] == "table-list-componentstatuses")
    expected = recorded["expect"]["body"]
    (port,) = free_ports(1)
    parts["controller-manager"] = await at_ports({"x": port})["x"]()
    got = (await asked(server, "GET", PATH, accept=recorded["request"]["accept"])).body
    assert [column["name"] for column in got["columnDefinitions"]] == [
        column["name"] for column in expected["columnDefinitions"]
    ]
    assert json.dumps(got["rows"][0]).replace(str(port), "10257") == json.dumps(expected["rows"][0])
    one = (await asked(server, "GET", f"{PATH}/controller-manager", accept=TABLE)).body
    assert [row["cells"][:2] for row in one["rows"]] == [["controller-manager", "Unhealthy"]]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, b"ok", ""),
        (500, b"it works no more, or too slowly\n", "it works no more, or too slowly"),
        (503, b"", "HTTP probe failed with statuscode: 503"),
        (500, b"x" * 100_000, "x" * SAID),
    ],
)
async def test_what_a_process_says_of_itself(status: int, body: bytes, problem: str) -> None:
    """By HTTPS with a certificate of its own; a long answer is read in part."""
    paths = []

    async def health(request: Request) -> Response:
        paths.append(request.path)
        return Response(status, {"content-type": "text/plain"}, body)

    server = HttpsServer(health, self_signed("127.0.0.1"))
    try:
        port = await server.listen("127.0.0.1", 0)
        assert await at_ports({"scheduler": port})["scheduler"]() == problem
    finally:
        await server.close(deadline=1.0)
    assert paths == ["/healthz"]


async def test_components_of_this_process() -> None:
    """They are not there before they have been started, and not when a task of theirs has ended."""
    own, going = OwnComponents(), asyncio.Event()

    async def problems() -> dict[str, str]:
        return {name: await ask() for name, ask in own.asked.items()}

    assert set((await problems()).values()) == {"it has not been started"}
    lasting = asyncio.create_task(asyncio.Event().wait(), name="scheduling")
    ending = asyncio.create_task(going.wait(), name="garbage")
    own.runs("scheduler", [lasting])
    own.runs("controller-manager", [lasting, ending])
    assert await problems() == {"scheduler": "", "controller-manager": ""}
    going.set()
    await at_rest()
    assert await problems() == {"scheduler": "", "controller-manager": "it has ended: garbage"}
    lasting.cancel()
