"""What a real Kubernetes 1.36 answered to requests on and around `pods/resize`, replayed against our server.

Compared are code, reason, message, causes, resulting resources, QoS class, generation and whether anything was written.
Where a message quotes Go's JSON decoder or Go's print of an object, its code, reason and field are compared.
"""

import copy
import json
from typing import Any

from podfit.api.codec import to_dict
from podfit.api.core.limits import ResourceQuota
from podfit.api.core.pods import Pod
from podfit.controllers.quotas import QuotaController
from support.golden import Case, parametrize
from support.server import Server, document

NAME, NAMESPACE = "pod1", "golden"
# The message quotes Go's JSON decoder or Go's print of a Struct: code, reason and field are compared, the text is ours.
OWN_TEXT = (
    "json: cannot unmarshal", "unexpected end of JSON input", "pod updates may not change fields other than",
    "415: Unsupported Media Type",
)  # fmt: skip


def _filled(value: Any, uid: str) -> Any:
    text = json.dumps(value).replace("{name}", NAME).replace("{ns}", NAMESPACE).replace("{uid}", uid)
    return json.loads(text.replace('"POD"', f'"{NAME}"'))


async def _set_up(server: Server, case: Case) -> str:
    """The case's namespace, setup and pod; answers the pod's uid."""
    await server.namespace(NAMESPACE)
    for step in case.get("setup") or []:
        await _set_up_object(server, _filled(step, ""))
    if case["request"]["method"] == "POST":
        return ""
    body = json.dumps(_filled(case["pod"], "")).encode()
    made = await server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body)
    assert made.status == 201, await made.read()
    uid: str = document(await made.read())["metadata"]["uid"]
    for step in _filled(case.get("pre") or [], uid):
        done = await server.ask(
            step["method"], step["path"], json.dumps(step["body"]).encode(), content_type=step["contentType"]
        )
        assert done.status == step["code"], await done.read()
    if reported := case.get("status"):
        patch = json.dumps({"status": reported}).encode()
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{NAME}/status"
        assert (await server.ask("PATCH", path, patch, content_type="application/merge-patch+json")).status == 200
    for step in case.get("setupAfterPod") or []:
        await _set_up_object(server, _filled(step, uid))
        await _counted(server)
    return uid


async def _counted(server: Server) -> None:
    """Let the quota controller count what is there."""
    controller = QuotaController(server.client, clock=server.context.clock, gates=server.context.gates)
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
    "valid", "qos", "removal", "other-resource", "other-field", "patch-type", "policy", "init", "pod-level",
    "resize-policy-create", "main-endpoint",
)  # fmt: skip


def _replayed(case: Case) -> bool:
    return case["group"] in GROUPS and case["request"].get("contentType") != "application/apply-patch+yaml"


@parametrize("resize/*.json", _replayed)
async def test_answers_as_recorded(server: Server, case: Case) -> None:
    uid = await _set_up(server, case)
    request = _filled(case["request"], uid)
    creates = request["method"] == "POST"
    before = (
        None
        if creates
        else document(await (await server.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{NAME}")).read())
    )
    body = (
        json.dumps(_filled(case["pod"], uid)).encode()
        if creates and "body" not in request
        else await _body(server, request)
    )
    path = request["path"] + (f"?{request['query']}" if request.get("query") else "")
    answer = await server.ask(
        request["method"], path, body, content_type=request.get("contentType") or "", **(request.get("headers") or {})
    )
    _compare(document(await answer.read()), answer.status, _filled(case["expect"], uid), before)


def _compare(got: dict[str, Any], status: int, expect: dict[str, Any], before: dict[str, Any] | None) -> None:
    assert status == expect["code"], got
    if status >= 400:
        assert got.get("reason") == expect.get("reason")
        if not any(text in expect["message"] for text in OWN_TEXT):
            assert got["message"] == expect["message"]
            assert got.get("details", {}).get("causes") == expect.get("details", {}).get("causes")
        return
    if "spec" not in got:
        return
    resources = {each["name"]: each["resources"] for each in got["spec"]["containers"]}
    if "spec_resources" in expect:
        wanted = copy.deepcopy(expect["spec_resources"])
        shown = {**resources, **{each["name"]: each["resources"] for each in got["spec"].get("initContainers", [])}}
        assert {name: shown.get(name) for name in wanted} == wanted
    for each in expect.get("containers", []):
        mine = next(one for one in got["spec"]["containers"] if one["name"] == each["name"])
        assert {key: mine.get(key) for key in each} == each
    assert got["metadata"].get("generation") == expect.get("generation", got["metadata"].get("generation"))
    assert got["status"].get("qosClass") == expect.get("qosClass", got["status"].get("qosClass"))
    if "podResources" in expect:
        assert got["spec"].get("resources") == expect["podResources"]
    if before is not None:
        assert got["metadata"]["generation"] - before["metadata"]["generation"] == expect.get("generation_delta", 0)
        if "resourceVersion_changed" in expect:
            changed = got["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
            assert changed is expect["resourceVersion_changed"]
