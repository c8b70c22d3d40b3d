"""Events of both groups, and leases, with inputs of no recording.

Known from upstream's code: `ValidateEventCreate`, `ValidateEventUpdate` and `legacyValidateEvent` in
`pkg/apis/core/validation/events.go`, `leaseStrategy` in `pkg/registry/coordination/lease`.
"""

from typing import Any

import pytest

from support.rules import NAMESPACE, asked
from support.server import Server

MERGE = "application/merge-patch+json"
WHEN = "2026-01-01T00:00:00.000001Z"
POD = {"kind": "Pod", "name": "p", "namespace": NAMESPACE}
SAID: dict[str, Any] = {"eventTime": WHEN, "reportingInstance": "i", "action": "a", "reason": "r"}
OLD = SAID | {"reportingComponent": "a/b"}
NEW = SAID | {"reportingController": "a/b", "type": "Normal"}


def _path(group: str, namespace: str) -> str:
    return f"{group}/namespaces/{namespace}/events"


CORE, EVENTS = "/api/v1", "/apis/events.k8s.io/v1"


@pytest.mark.parametrize("namespace", [NAMESPACE, "default", "kube-system"])
async def test_where_an_event_lives(server: Server, namespace: str) -> None:
    if namespace == NAMESPACE:
        await server.namespace(NAMESPACE)
    rows: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
        ({}, {}, namespace == "default"),
        ({"namespace": namespace}, {}, True),
        ({"namespace": "x"}, {}, False),
        ({}, OLD, namespace != NAMESPACE),
        ({"namespace": namespace}, OLD, True),
        ({"namespace": "x"}, OLD, True),
    ]
    for number, (about, more, fits) in enumerate(rows):
        body = {"metadata": {"name": f"e{number}"}, "involvedObject": about} | more
        answer = await asked(server, "POST", _path(CORE, namespace), body)
        expected = (201, []) if fits else (422, ["involvedObject.namespace"])
        assert (answer.code, answer.fields) == expected, (about, more)


async def test_what_an_event_of_the_core_group_says(server: Server) -> None:
    await server.namespace(NAMESPACE)
    rows: list[tuple[str, dict[str, Any], list[str]]] = [
        ("Bad_Name", {"type": "Weird"}, []),
        ("a", {"reason": "", "action": "x" * 200, "message": "m" * 2000}, []),
        ("b", {"series": {"count": 1}}, []),
        ("c", {"firstTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "x"}, "count": 3} | OLD, []),
        ("d", OLD | {"reportingComponent": ""}, 3 * ["reportingComponent"]),
        ("e", OLD | {"reportingComponent": "a b"}, ["reportingComponent"]),
        ("f", OLD | {"reportingInstance": "", "action": "", "reason": ""}, ["reportingInstance", "action", "reason"]),
        ("g", OLD | {"reportingInstance": "x" * 129, "message": "m" * 1025}, ["reportingInstance", "message"]),
        ("h", OLD | {"action": "x" * 129, "reason": "x" * 129}, ["action", "reason"]),
        ("i", OLD | {"action": "x" * 128, "message": "m" * 1024, "type": "X", "series": {"count": 1}}, []),
        ("j/k", {}, ["metadata.name"]),
    ]
    for name, more, fields in rows:
        body = {"metadata": {"name": name}, "involvedObject": POD} | more
        answer = await asked(server, "POST", _path(CORE, NAMESPACE), body)
        assert (answer.code, answer.fields) == (422 if fields else 201, fields), (name, answer.message)


async def test_what_an_event_of_its_own_group_says(server: Server) -> None:
    await server.namespace(NAMESPACE)
    rows: list[tuple[str, dict[str, Any], list[str]]] = [
        ("a", NEW, []),
        ("Bad_Name", NEW, ["metadata.name"]),
        ("b", NEW | {"type": "Weird"}, ["type"]),
        ("c", NEW | {"series": {"count": 1, "lastObservedTime": WHEN}}, ["series.count"]),
        ("d", NEW | {"series": {"count": 2, "lastObservedTime": None}}, ["series.lastObservedTime"]),
        ("e", NEW | {"series": {"count": 0, "lastObservedTime": None}}, ["series.count", "series.lastObservedTime"]),
        ("f", NEW | {"eventTime": None}, ["eventTime"]),
        ("g", NEW | {"deprecatedCount": 1, "note": "n" * 1025}, ["message", "count"]),
        ("h", NEW | {"regarding": {"kind": "Node", "name": "n"}}, ["involvedObject.namespace"]),
        ("i", NEW | {"regarding": POD | {"namespace": "x"}}, []),
    ]
    for name, more, fields in rows:
        body = {"metadata": {"name": name}, "regarding": POD} | more
        answer = await asked(server, "POST", _path(EVENTS, NAMESPACE), body)
        assert (answer.code, answer.fields) == (422 if fields else 201, fields), (name, answer.message)
    changes: list[tuple[dict[str, Any], list[str]]] = [
        ({"series": {"count": 1, "lastObservedTime": WHEN}}, ["series.count"]),
        ({"series": {"count": 3, "lastObservedTime": WHEN}}, []),
        ({"reason": "other"}, ["reason", "reason"]),
        ({"reason": "", "type": "Warning"}, ["reason", "reason", "reason", "type"]),
        ({"note": "x", "action": "b", "eventTime": "2026-01-01T00:00:09.000000Z"}, ["message", "eventTime", "action"]),
        ({"metadata": {"labels": {"a": "b"}}}, []),
    ]
    for change, fields in changes:
        answer = await asked(server, "PATCH", f"{_path(EVENTS, NAMESPACE)}/a", change, content_type=MERGE)
        assert (answer.code, answer.fields) == (422 if fields else 200, fields), (change, answer.message)
    free = {"reason": "", "type": "X", "message": "m"}
    assert (await asked(server, "PATCH", f"{_path(CORE, NAMESPACE)}/a", free, content_type=MERGE)).fields == ["reason"]


async def test_leases_are_not_coordinated(server: Server) -> None:
    await server.namespace(NAMESPACE)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    spec: dict[str, Any] = {"strategy": "Nope", "preferredHolder": "x", "holderIdentity": "y"}
    made = await asked(server, "POST", leases, {"metadata": {"name": "l"}, "spec": spec})
    assert (made.code, made.body["spec"]) == (201, {"holderIdentity": "y"})
    kept = await asked(server, "PATCH", f"{leases}/l", {"spec": spec | {"strategy": "a/b"}}, content_type=MERGE)
    assert (kept.code, kept.body["spec"]) == (200, {"holderIdentity": "y"})
    for name, value in (("leaseDurationSeconds", 0), ("leaseDurationSeconds", -1), ("leaseTransitions", -1)):
        bad = await asked(server, "PATCH", f"{leases}/l", {"spec": {name: value}}, content_type=MERGE)
        assert (bad.code, bad.fields) == (422, [f"spec.{name}"])
