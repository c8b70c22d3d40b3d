"""Resizes and creations as a real API server judged them, replayed against the pure rules.

Admission, transport and status codes that no rule decides are the server's, and are replayed against it.
"""

from typing import Any

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.core.v1.pods.validation.pod import validate_pod_create
from podfit.api.defaults import apply_defaults
from podfit.api.meta.codec import convert, to_dict
from podfit.core.features import DEFAULT_GATES
from podfit.core.fields import FieldError, refusal
from podfit.decide.pod.qos import qos_class
from podfit.decide.resize.validation import prepare_resize, validate_resize
from support import golden
from support.patches import JSON, MERGE, STRATEGIC, patched

NAME = "{name}"
RESIZE = "/api/v1/namespaces/{ns}/pods/{name}/resize"
CREATE = "/api/v1/namespaces/{ns}/pods"


def stored(manifest: dict[str, Any], reported: dict[str, Any] | None = None) -> Pod:
    """As the server would keep it, with what a node reported of it."""
    pod = apply_defaults(convert({**manifest, "metadata": {**manifest["metadata"], "name": "pod"}}, Pod))
    metadata = msgspec.structs.replace(pod.metadata, namespace="default", generation=1)
    status = convert({"phase": "Pending", **(reported or {}), "qosClass": qos_class(pod)}, PodStatus)
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


def answer(errors: list[FieldError]) -> dict[str, Any]:
    if not errors:
        return {}
    status = refusal("Pod", "pod", errors).status()
    return {"message": status["message"].replace('"pod"', f'"{NAME}"', 1), "causes": status["details"]["causes"]}


def resources(pod: Pod) -> dict[str, Any]:
    spec = to_dict(pod.spec)
    return {
        container["name"]: container["resources"]
        for container in (*spec["containers"], *spec.get("initContainers", []))
    }


def recorded(expect: dict[str, Any]) -> dict[str, Any]:
    everyone = (*expect["containers"], *expect.get("initContainers", []))
    return {container["name"]: container.get("resources", {}) for container in everyone}


def decidable(case: golden.Case) -> bool:
    if not case.keys() >= {"request", "expect"}:
        return False
    request, expect = case["request"], case["expect"]
    refused = (
        expect["code"] == 422 and "is invalid" in expect["message"] and "is invalid: patch:" not in expect["message"]
    )
    ruled = refused or expect["code"] in (200, 201)
    return ruled and not case.keys() & {"setup", "setupAfterPod", "pre"} and "{" not in str(request.get("query", ""))


def is_resize(case: golden.Case) -> bool:
    request = case.get("request", {})
    types = (JSON, MERGE, STRATEGIC)
    return request.get("path") == RESIZE and request.get("contentType") in types and decidable(case)


@golden.parametrize("resize/*.json", is_resize)
def test_resize(case: golden.Case) -> None:
    old = stored(case["pod"], case.get("status"))
    request, expect = case["request"], case["expect"]
    document = patched(to_dict(old), request["body"], request["contentType"])
    new = prepare_resize(apply_defaults(convert(document, Pod)), old, DEFAULT_GATES)
    verdict = answer(validate_resize(new, old, DEFAULT_GATES))
    if expect["code"] == 422:
        assert verdict["message"] == expect["message"]
        if causes := expect.get("causes"):
            assert [(c["reason"], c["field"]) for c in verdict["causes"]] == [(c["reason"], c["field"]) for c in causes]
        return
    assert verdict == {}
    assert resources(new) == recorded(expect)
    assert to_dict(new.spec.resources) == expect.get("podResources")
    assert new.metadata.generation - old.metadata.generation == expect.get("generation_delta", 0)
    assert qos_class(new) == expect["qosClass"]


def is_create(case: golden.Case) -> bool:
    request = case.get("request", {})
    return request.get("path") == CREATE and request["method"] == "POST" and decidable(case)


@golden.parametrize("resize/*.json", is_create)
def test_create(case: golden.Case) -> None:
    expect, pod = case["expect"], stored(case["request"]["body"])
    verdict = answer(validate_pod_create(pod, DEFAULT_GATES))
    if expect["code"] == 422:
        assert verdict["message"] == expect["message"]
        return
    assert verdict == {}
    assert resources(pod) == recorded(expect)
    assert to_dict(pod.spec.resources) == expect.get("podResources")
    assert pod.status.qos_class == expect["qosClass"]
