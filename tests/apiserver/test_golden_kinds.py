"""Defaults and refusals of the kinds beside pods, sent to our server and compared with what a real Kubernetes 1.36 did.

Every recorded case about these resources is sent; whole answers are compared, refusals word for word.
"""

import json
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from podfit.apiserver.registry.service_allocation import ServiceRanges
from support.golden import Case, parametrize
from support.replay import Replay, comparable, differences, served
from support.server import Server, running_server

RESOURCES = (
    "services",
    "endpoints",
    "endpointslices",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
    "csidrivers",
    "runtimeclasses",
    "events.k8s.io",
    "networking.k8s.io",
    "certificatesigningrequests",
)
GO_DIFF = "\n@@"
ITS_RANGE = ServiceRanges(ip_network("10.96.0.0/16"))


def wanted(case: Case) -> bool:
    steps = [*(case.get("setup") or []), case["request"]]
    return served(case) and any(name in step["path"].split("/") for step in steps for name in RESOURCES)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path, ranges=ITS_RANGE) as running:
        yield running


@parametrize("api/defaulting.json", wanted)
async def test_defaults(server: Server, case: Case) -> None:
    await _check(server, case)


@parametrize("api/validation.json", wanted)
async def test_refusals(server: Server, case: Case) -> None:
    await _check(server, case)


async def _check(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare(case)
    answer = await replay.send(case["request"])
    expect = replay.expected(case)
    got = json.loads(await answer.read())
    assert not list(differences(_judged(expect["body"]), _judged(got))), got
    assert answer.status == expect["code"]


def _judged(body: Any) -> Any:
    """A refusal by its words; what follows in Go's own print of an object is not compared."""
    if body.get("kind") == "Status":
        return {"reason": body["reason"], "message": body["message"].partition(GO_DIFF)[0]}
    return comparable(body)
