"""What a real Kubernetes 1.36 answered to server-side apply, replayed against our server.

Compared is the whole answer. Where upstream answers 500 to what a client did wrong, ours is a 400 that says so.
"""

from typing import Any

import pytest

from support.golden import Case, parametrize
from support.replay import CONTROLLER_MANAGER, Replay, comparable, differences, served, without_controllers
from support.server import Server, document

OWN_TEXT = ("field is immutable",)
DATED = ("cr-get",)  # who scales a custom resource is dated here, as everybody else


@pytest.mark.row("R-003")
@parametrize(
    "api/apply.json*",
    lambda case: served(case) and case["id"] not in DATED,
    whole=lambda case: case["expect"]["code"] not in (415, 500),
)
async def test_apply_answers_as_recorded(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare(case)
    answer = await replay.send(case["request"])
    _compare(document(await answer.read()), answer.status, replay.expected(case))


def _compare(got: dict[str, Any], status: int, expect: dict[str, Any]) -> None:
    if expect["code"] == 500:
        assert (status, got["reason"]) == (400, "BadRequest")
        assert got["message"] == expect["body"]["message"]
        return
    assert status == expect["code"], got
    if "415" in str(expect["body"].get("message")):
        assert got["reason"] == expect["body"]["reason"]
        return
    expected = expect["body"]
    if CONTROLLER_MANAGER in str(expected):
        expected, got = without_controllers(expected), without_controllers(got)
    assert not list(differences(comparable(expected), comparable(got)))


PODS = "/api/v1/namespaces/golden/pods"


@pytest.mark.row("R-003", "R-011")
@parametrize("resize/*.json", lambda case: case["group"] == "apply")
async def test_apply_of_a_resize_answers_as_recorded(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare({})
    named = _named(case)
    if "pod" in case:
        made = await replay.send({"method": "POST", "path": f"{PODS}?fieldManager=creator", "body": named["pod"]})
        assert made.status == 201, await made.read()
    before = document(await (await replay.send({"method": "GET", "path": f"{PODS}/pod1"})).read())
    answer = await replay.send(named["request"])
    got, expect = document(await answer.read()), replay.expected(named)
    if expect["code"] >= 400:
        _compare_refusal(got, answer.status, expect)
        after = document(await (await replay.send({"method": "GET", "path": f"{PODS}/pod1"})).read())
        assert after == before
        return
    assert answer.status == expect["code"], got
    assert not list(differences(expect["managedFields"], _timeless(got["metadata"]["managedFields"])))
    assert {container["name"]: container["resources"] for container in got["spec"]["containers"]} == expect[
        "spec_resources"
    ]
    assert got["spec"].get("resources") == expect.get("podResources")
    assert got["spec"]["containers"][0]["image"] == expect["containers"][0]["image"]
    assert (got["metadata"]["generation"], got["status"]["qosClass"]) == (expect["generation"], expect["qosClass"])
    if "resourceVersion_changed" in expect:
        changed = got["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        assert changed is expect["resourceVersion_changed"]


def _named(case: Case) -> Case:
    import json

    named: Case = json.loads(json.dumps(case).replace("{name}", "pod1").replace('"POD"', '"pod1"'))
    return named


def _timeless(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def _compare_refusal(got: dict[str, Any], status: int, expect: dict[str, Any]) -> None:
    if expect["code"] == 500:
        assert (status, got["reason"]) == (400, "BadRequest")
        assert got["message"] == expect["message"]
        return
    assert (status, got["reason"]) == (expect["code"], expect["reason"])
    if "pod updates may not change" not in expect["message"]:
        assert got["message"] == expect["message"]
        assert got.get("details", {}).get("causes") == expect.get("details", {}).get("causes")
