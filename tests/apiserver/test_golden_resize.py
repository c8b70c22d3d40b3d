"""What a real Kubernetes 1.36 answered to requests on and around `pods/resize`, replayed against our server.

Compared are code, reason, message, causes, resulting resources, QoS class, generation and whether anything was written.
Where a message quotes Go's JSON decoder or Go's print of an object, its code, reason and field are compared.
"""

import json
from typing import Any

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.client.informers import Informers
from podfit.controllers.quotas import QuotaController
from support.golden import Case, parametrize
from support.server import Server, document

NAME, NAMESPACE = "pod1", "golden"
NODES = {"gnode": ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"), "oldnode": ()}
"""The nodes that the cases are bound to, and the features that they declare; both have 4 CPU and 8Gi."""
# The message quotes Go's JSON decoder or Go's print of a Struct: code, reason and field are compared, the text is ours.
OWN_TEXT = (
    'patch: Invalid value: "{\\"apiVersion\\"',  # the whole patched object, in an order of Go's maps
    "json: cannot unmarshal",
    "unexpected end of JSON input",
    "pod updates may not change fields other than",
    "415: Unsupported Media Type",
)


def _filled(value: Any, uid: str, *, live: str = "{live}") -> Any:
    text = json.dumps(value).replace("{live}", live).replace("{name}", NAME).replace("{ns}", NAMESPACE)
    text = text.replace("{uid}", uid)
    return json.loads(text.replace('"POD"', f'"{NAME}"'))


def _refused_at_creation(case: Case) -> bool:
    return "precreate" in case["expect"]


@parametrize("resize/*.json", _refused_at_creation)
async def test_refused_at_creation(server: Server, case: Case) -> None:
    await server.namespace(NAMESPACE)
    body = json.dumps(_filled(case["pod"], "")).encode()
    answer = await server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body)
    assert answer.status == case["expect"]["precreate"]
    said = document(await answer.read())["message"]
    assert said.partition(" is invalid: ")[2] == case["expect"]["message"].partition(" is invalid: ")[2]


async def _set_up(server: Server, case: Case) -> str:
    """The case's namespace, setup and pod; answers the pod's uid."""
    await server.namespace(NAMESPACE)
    for name, features in NODES.items():
        await _node(server, name, features)
    for step in case.get("setup") or []:
        await _set_up_object(server, _filled(step, ""))
    if case["request"]["method"] == "POST":
        return ""
    if "pod" not in case:
        return ""
    body = json.dumps(_filled(case["pod"], "")).encode()
    made = await server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body)
    assert made.status == 201, await made.read()
    uid: str = document(await made.read())["metadata"]["uid"]
    for step in _filled(case.get("pre") or [], uid):
        body = json.dumps(step["body"]).encode() if step["body"] is not None else b""
        done = await server.ask(step["method"], step["path"], body, content_type=step["contentType"])
        assert done.status == step["code"], await done.read()
    if reported := case.get("status"):
        patch = json.dumps({"status": reported}).encode()
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{NAME}/status"
        assert (await server.ask("PATCH", path, patch, content_type="application/merge-patch+json")).status == 200
    for step in case.get("setupAfterPod") or []:
        await _set_up_object(server, _filled(step, uid))
        await _counted(server)
    return uid


async def _node(server: Server, name: str, features: tuple[str, ...]) -> None:
    await server.client.create(convert({"metadata": {"name": name}}, Node))
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "declaredFeatures": list(features)}
    patch = json.dumps({"status": status}).encode()
    done = await server.ask("PATCH", f"/api/v1/nodes/{name}/status", patch, content_type="application/merge-patch+json")
    assert done.status == 200, await done.read()


async def _counted(server: Server) -> None:
    """Let the quota controller count what is there."""
    clock, client = server.context.clock, server.client
    controller = QuotaController(client, informers=Informers(client, clock), clock=clock, gates=server.context.gates)
    for quota in (await server.client.list(ResourceQuota, NAMESPACE)).items:
        await controller.reconcile((NAMESPACE, quota.metadata.name))


async def _set_up_object(server: Server, step: dict[str, Any]) -> None:
    obj = step.get("object", step)
    resource = {"LimitRange": "limitranges", "ResourceQuota": "resourcequotas"}[obj["kind"]]
    made = await server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/{resource}", json.dumps(obj).encode())
    assert made.status == 201, await made.read()


async def _body(server: Server, request: dict[str, Any]) -> bytes:
    body = request.get("body")
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, dict) and "$live_object_with" in body:
        live = to_dict(await server.client.get(Pod, NAME, NAMESPACE))
        for path, value in body["$live_object_with"].items():
            _put(live, path, value)
        return json.dumps(live).encode()
    return json.dumps(body).encode() if body is not None else b""


def _put(document: Any, path: str, value: Any) -> None:
    *parents, last = path.replace("[", ".").replace("]", "").split(".")
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document.setdefault(part, {})
    if isinstance(document, list):
        document[int(last)] = value
    elif value is None:
        document.pop(last, None)
    else:
        document[last] = value


GROUPS = (
    "valid",
    "qos",
    "removal",
    "other-resource",
    "other-field",
    "patch-type",
    "policy",
    "init",
    "pod-level",
    "resize-policy-create",
    "main-endpoint",
    "concurrency",
    "field-validation",
    "state",
    "value",
)


def _replayed(case: Case) -> bool:
    applies = case.get("request", {}).get("contentType") == "application/apply-patch+yaml"
    return case["group"] in GROUPS and "request" in case and not applies


@parametrize("resize/*.json", _replayed)
async def test_answers_as_recorded(server: Server, case: Case) -> None:
    uid = await _set_up(server, case)
    request = _filled(case["request"], uid)
    creates = request["method"] == "POST"
    before = {} if creates else await _stored(server)
    request = _filled(request, uid, live=before.get("metadata", {}).get("resourceVersion", ""))
    sends_pod = creates and "body" not in request
    body = json.dumps(_filled(case["pod"], uid)).encode() if sends_pod else await _body(server, request)
    path = request["path"] + (f"?{request['query']}" if request.get("query") else "")
    answer = await server.ask(
        request["method"], path, body, content_type=request.get("contentType") or "", **(request.get("headers") or {})
    )
    got, expect = document(await answer.read()), _filled(case["expect"], uid)
    assert answer.status == expect["code"], got
    if "warnings" in expect:
        assert answer.headers.get("warning") == ", ".join(expect["warnings"])
    if expect.get("unchanged_after") and not creates:
        assert await _stored(server) == before
    if answer.status >= 400:
        _compare_refusal(got, expect)
    elif "spec" in got:
        _compare_pod(got, expect)
        if before:
            _compare_change(got, before, expect)


async def _stored(server: Server) -> dict[str, Any]:
    return document(await (await server.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{NAME}")).read())


def _compare_refusal(got: dict[str, Any], expect: dict[str, Any]) -> None:
    assert got.get("reason") == expect.get("reason")
    if not any(text in expect["message"] for text in OWN_TEXT):
        assert got["message"] == expect["message"]
        assert got.get("details", {}).get("causes") == expect.get("details", {}).get("causes")


def _compare_pod(got: dict[str, Any], expect: dict[str, Any]) -> None:
    spec, status, meta = got["spec"], got["status"], got["metadata"]
    containers = {container["name"]: container for container in (*spec["containers"], *spec.get("initContainers", []))}
    for container in (*expect.get("containers", []), *expect.get("initContainers", [])):
        mine = containers[container["name"]]
        assert {key: mine.get(key) for key in container} == container
    for where, names in (
        (meta, ("generation", "labels", "annotations", "finalizers")),
        (status, ("qosClass", "phase", "observedGeneration")),
        (spec, ("nodeName", "terminationGracePeriodSeconds", "schedulerName")),
    ):
        assert {name: where.get(name) for name in names if name in expect} == {
            name: expect[name] for name in names if name in expect
        }
    if "podResources" in expect:
        assert spec.get("resources") == expect["podResources"]


def _compare_change(got: dict[str, Any], before: dict[str, Any], expect: dict[str, Any]) -> None:
    assert got["metadata"]["generation"] - before["metadata"]["generation"] == expect.get("generation_delta", 0)
    if "resourceVersion_changed" in expect:
        changed = got["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        assert changed is expect["resourceVersion_changed"]
