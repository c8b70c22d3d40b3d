"""Lists, watches, tables, writes, patches and refusals, compared with what a real Kubernetes 1.36 answered.

Every recorded case about a kind that is served is sent to our server. Whole answers are compared, but for texts that
are ours (descriptions of columns), ages, and what we do not give to pods. A case stands in DEVIATIONS, with its reason
and in docs/compatibility.md, or it agrees.
"""

import asyncio
import json
import re
from typing import Any

from podfit.apiserver.request.yaml_documents import parse_yaml_strictly
from podfit.net.wire import Response
from support.clock import FakeClock
from support.garbage import collecting
from support.golden import Case, parametrize
from support.replay import (
    CONTROLLER_MANAGER,
    NAMESPACE,
    Replay,
    comparable,
    differences,
    projected,
    served,
    without_controllers,
)
from support.server import Server

_COMPACTED = "the recorded server had compacted its history, a new one has not"
_FAULT = "upstream answers 500 to what is the client's mistake or the node's absence"
_VERSION = "the server says what it is"
_RECORDED_ON = "made by a controller of the recorded cluster"
_QUOTED = "code and reason agree; upstream quotes the whole patched object and its decoder, we quote the patch"

DEVIATIONS = {
    "get-rv-abc": _FAULT,
    "binding-no-name": _FAULT,
    "binding-bad-kind": _FAULT,
    "ephemeral-log-node-absent": _FAULT,
    "ephemeral-portforward": _FAULT,
    "list-continue-old-rv": _COMPACTED,
    "list-rv-1-exact-compacted-or-not": _COMPACTED,
    "watch-too-old-410": _COMPACTED,
    "watch-too-old-410-table": _COMPACTED,
    "watch-too-old-410-bookmarks": _COMPACTED,
    "table-list-jobs": _RECORDED_ON,
    "table-get-jobs": _RECORDED_ON,
    "table-list-apiservices": _RECORDED_ON,
    "table-list-componentstatuses": "which parts there are: test_component_statuses.py compares the row",
    "table-list-persistentvolumes": _RECORDED_ON,
    "table-get-persistentvolumes": _RECORDED_ON,
    "table-list-nodes": _RECORDED_ON,
    "table-list-resourcequotas": _RECORDED_ON,
    "namespace-delete": _RECORDED_ON,
    "namespace-get-terminating": _RECORDED_ON,
    "namespace-delete-again": _RECORDED_ON,
    "user-version": _VERSION,
    "sa-version": _VERSION,
    "node-version": _VERSION,
    "token-ok-api": _VERSION,
    "table-list-daemonsets": "upstream's tables lack the annotation that counts templates, its objects have it",
}

OWN_TEXT = {
    "create-delete-precond-rv": "the recorded message names that server's revisions",
    "mp-wrong-type": _QUOTED,
    "mp-number-string": _QUOTED,
    "jp-wrong-type": _QUOTED,
}
"""Refusals that agree by code and reason."""

_WHOLE = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1}
COUNTED = {"eviction-429": _WHOLE, "eviction-429-dry": _WHOLE}
"""What the controller of disruption budgets had counted: it is not there yet, so the test says it."""


def _wanted(case: Case) -> bool:
    return served(case) and case["id"] not in DEVIATIONS and case["id"] not in OWN_TEXT


async def check(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare(case)
    assert isinstance(server.context.clock, FakeClock)
    await server.context.clock.settle()
    if case["id"] in COUNTED:
        path, status = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/pdb/status", COUNTED[case["id"]]
        kind = "application/merge-patch+json"
        await server.ask("PATCH", path, json.dumps({"status": status}).encode(), content_type=kind)
    answer = await replay.send(case["request"], anonymous="no client certificate" in case.get("note", ""))
    expect = replay.expected(case)
    body = "" if case["request"]["method"] == "HEAD" else await _body(server, answer)  # which HTTP leaves out
    assert answer.status == expect["code"], body
    watched = not isinstance(answer.body, bytes)
    if "bodyText" in expect:
        _compare_text(expect["bodyText"], body)
    elif watched:
        compare(expect.get("bodyLines") or [expect["body"]], [json.loads(line) for line in body.splitlines()])
    elif "body" in expect:
        compare(expect["body"], json.loads(body))


async def refused_alike(server: Server, case: Case) -> None:
    """A refusal with the recorded code and reason, in our words."""
    replay = Replay(server)
    await replay.prepare(case)
    answer = await replay.send(case["request"])
    expect = replay.expected(case)
    got = json.loads(await _body(server, answer))
    assert (answer.status, got["reason"]) == (expect["code"], expect["body"]["reason"])


async def _body(server: Server, answer: Response) -> str:
    """The whole text; a watch is read until the second is over for which it was asked."""
    if isinstance(answer.body, bytes):
        return answer.body.decode()
    reading = asyncio.ensure_future(_read(answer))
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(1)
    return await reading


async def _read(answer: Response) -> str:
    assert not isinstance(answer.body, bytes)
    return b"".join([chunk async for chunk in answer.body]).decode()


def compare(expected: Any, got: Any) -> None:
    if CONTROLLER_MANAGER in str(expected):
        expected, got = without_controllers(expected), without_controllers(got)
    assert not list(differences(comparable(expected), comparable(projected(expected, got))))


def _compare_text(expected: str, got: str) -> None:
    """JSON by its layout and content, YAML by its content, other texts as they are."""
    if expected.startswith("apiVersion:"):
        quoted = re.sub(r": (\{\w+\})$", r': "\1"', expected, flags=re.MULTILINE)
        assert not list(
            differences(
                comparable(parse_yaml_strictly(quoted.encode())[0]), comparable(parse_yaml_strictly(got.encode())[0])
            )
        )
        return
    if not expected.startswith("{"):
        assert not list(differences(expected, got))
        return
    assert got.startswith("{\n  " if "\n  " in expected else '{"')
    assert got.endswith("\n") is expected.endswith("\n")
    assert not list(differences(comparable(json.loads(expected)), comparable(json.loads(got))))


@parametrize("api/verbs.json*", _wanted)
async def test_verbs(server: Server, case: Case) -> None:
    if case["id"].startswith("propagation-"):
        async with collecting(server, server.context.clock):
            await check(server, case)
    else:
        await check(server, case)


@parametrize("api/patch.json*", _wanted)
async def test_patches(server: Server, case: Case) -> None:
    await check(server, case)


def _in_our_words(case: Case) -> bool:
    return case["id"] in OWN_TEXT


@parametrize("api/verbs.json*", _in_our_words, whole=lambda _: False)
async def test_verbs_refused_in_our_words(server: Server, case: Case) -> None:
    await refused_alike(server, case)


@parametrize("api/patch.json*", _in_our_words, whole=lambda _: False)
async def test_patches_refused_in_our_words(server: Server, case: Case) -> None:
    await refused_alike(server, case)


@parametrize("api/rbac.json*", _wanted)
async def test_rbac(server: Server, case: Case) -> None:
    await check(server, case)


REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")


def _asks(case: Case) -> bool:
    return _wanted(case) and any(f"/apis/{group}/" in case["request"]["path"] for group in REVIEWS)


@parametrize("api/defaulting.json*", _asks)
async def test_reviews(server: Server, case: Case) -> None:
    await check(server, case)


@parametrize("api/validation.json*", _asks)
async def test_reviews_that_make_no_sense(server: Server, case: Case) -> None:
    await check(server, case)


READ = ("hpa-v2-read-as-v1", "cronjob-tz-in-schedule")
"""Of the defaults, what has to go through a server."""


@parametrize("api/defaulting.json*", lambda case: case["id"] in READ)
async def test_defaults_as_they_are_read(server: Server, case: Case) -> None:
    await check(server, case)


def _makes_pod(case: Case) -> bool:
    return _wanted(case) and case["request"]["method"] == "POST" and case["request"]["path"].endswith("/pods")


@parametrize("api/defaulting.json*", _makes_pod)
async def test_pods_as_admission_leaves_them(server: Server, case: Case) -> None:
    await check(server, case)
