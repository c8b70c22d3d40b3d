"""Horizontal pod autoscalers as a real API server took them in, refused them and showed them in either version."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from podfit.core.features import FeatureGates
from support.golden import Case, cases, parametrize
from support.server import Server, running_server

PATTERN = "hpa/validation.json*"
PASSING = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
GATE = "HPAScaleToZero"
REFUSED = 400
COLLECTION = "horizontalpodautoscalers"
pytestmark = pytest.mark.asyncio(loop_scope="module")


def comparable(body: Any) -> Any:
    """Without what differs from run to run."""
    kept = {name: value for name, value in body.items() if name not in ("metadata", "details")}
    for part in ("metadata", "details"):
        if part in body:
            kept[part] = {name: value for name, value in body[part].items() if name not in PASSING}
    return kept


def refused(body: Any) -> tuple[str, str, Any]:
    return body["reason"], body["message"], body.get("details", {}).get("causes")


async def answered(server: Server, method: str, path: str, body: Any = None, media: str = "") -> tuple[int, Any]:
    sent = b"" if body is None else json.dumps(body).encode()
    answer = await server.ask(method, path, sent, content_type=media or "application/json")
    return answer.status, json.loads(await answer.read())


async def asked(server: Server, given: dict[str, Any]) -> tuple[int, Any]:
    media = given.get("content_type") or ""
    return await answered(server, given["method"], given["path"], given.get("body"), media)


async def prepare(server: Server, given: dict[str, Any]) -> None:
    _, _, place = given["path"].partition("/namespaces/")
    if place:
        namespace = place.partition("/")[0]
        await answered(server, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        await answered(server, "DELETE", f"/apis/autoscaling/v2/namespaces/{namespace}/{COLLECTION}")
    if "existing" in given:
        collection = given["path"].partition(f"/{COLLECTION}")[0] + f"/{COLLECTION}"
        code, made = await answered(server, "POST", collection, given["existing"])
        assert code == 201, made


async def check(server: Server, case: Case) -> None:
    given, out = case["in"], case["out"]
    code, body = await asked(server, given)
    assert code == out["code"], body
    if code >= REFUSED:
        causes = [(wanted.get("details") or {}).get("causes") for wanted in (body, out["body"])]
        assert (body["reason"], body["message"], causes[0]) == (
            out["body"]["reason"],
            out["body"]["message"],
            causes[1],
        )
    else:
        assert comparable(body) == comparable(out["body"])
    for read in out.get("reads", ()):
        _, shown = await answered(server, "GET", read["path"])
        assert comparable(shown) == comparable(read["body"])


def before(case: Case) -> list[Case]:
    """The cases that act on the same object first."""
    chain = case.get("chain")
    return [other for other in cases(PATTERN) if chain and other.get("chain") == chain and other["id"] < case["id"]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[bool, Server]]:
    """With the gate HPAScaleToZero, and without."""
    async with AsyncExitStack() as running:
        yield {
            gate: await running.enter_async_context(
                running_server(tmp_path_factory.mktemp("hpa"), gates=FeatureGates({GATE: gate}))
            )
            for gate in (False, True)
        }


@parametrize(PATTERN)
async def test_hpa_api(servers: dict[bool, Server], case: Case) -> None:
    server = servers[case["in"].get("gates", {}).get(GATE, False)]
    await prepare(server, case["in"])
    for other in before(case):
        await asked(server, other["in"])
    await check(server, case)
