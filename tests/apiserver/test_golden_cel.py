"""Costs and types of CEL rules, their run-time budget and conditions of webhooks, as a real Kubernetes 1.36 has it."""

import json

from support.golden import Case, parametrize
from support.replay import Replay, comparable, differences
from support.server import Server

DEVIATIONS: dict[str, str] = {}


@parametrize("api/celcost.json*", lambda case: case["id"] not in DEVIATIONS)
async def test_cel(server: Server, case: Case) -> None:
    """Watches in a setup are pauses for the server that was recorded; a kind of ours is served at once."""
    replay = Replay(server)
    steps = [step for step in case["setup"] if "watch=1" not in step.get("query", "")]
    await replay.prepare(case | {"setup": steps})
    answer = await replay.send(case["request"])
    expect, text = replay.expected(case), (await answer.read()).decode()
    assert answer.status == expect["code"], text
    assert not list(differences(comparable(expect["body"]), comparable(json.loads(text))))
