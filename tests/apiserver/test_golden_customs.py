"""Definitions and custom resources: creations and changes compared with what a real Kubernetes 1.36 answered."""

import json
import re
from typing import Any

from support.golden import Case, parametrize
from support.replay import DEFINITIONS, Replay, comparable, differences, served
from support.server import Server

OWN_TEXT = ("cr-metadata-label-int",)  # upstream quotes Go's JSON decoder


def _wanted(case: Case) -> bool:
    about = DEFINITIONS in json.dumps([case["request"], case.get("setup") or []])
    return about and served(case)


async def _check(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare(case)
    answer = await replay.send(case["request"])
    expect, text = replay.expected(case), (await answer.read()).decode()
    assert answer.status == expect["code"], text
    if "bodyText" in expect:
        assert text == expect["bodyText"]
        return
    got, wanted = comparable(json.loads(text)), comparable(expect["body"])
    if _is_of_members(wanted):
        got, wanted = _sorted(got), _sorted(wanted)
    if case["id"] in OWN_TEXT:
        assert got.pop("message")
        del wanted["message"]
    assert not list(differences(wanted, got))
    warnings = expect["headers"].get("warning", [])
    assert answer.headers.get("warning", "") == ", ".join([warnings] if isinstance(warnings, str) else warnings)


def _is_of_members(status: dict[str, Any]) -> bool:
    """Whether a custom resource is refused for several members, at which upstream looks in no order."""
    details = status.get("details") or {}
    return len(details.get("causes") or ()) > 2 and details.get("group") not in ("", "apiextensions.k8s.io")


def _sorted(status: dict[str, Any]) -> dict[str, Any]:
    """With the causes, and what the message says of them, in one order."""
    causes = sorted(status["details"]["causes"], key=json.dumps)
    message = sorted(re.findall(r"[^\s,\[\]]+", status["message"]))
    return status | {"message": message, "details": status["details"] | {"causes": causes}}


@parametrize("api/validation.json", _wanted, whole=lambda case: case["id"] not in OWN_TEXT)
async def test_validation(server: Server, case: Case) -> None:
    await _check(server, case)


@parametrize("api/defaulting.json", _wanted)
async def test_defaults(server: Server, case: Case) -> None:
    await _check(server, case)
