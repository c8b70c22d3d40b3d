"""Refusals of new and changed objects, word for word as a real API server gave them."""

from typing import Any

import msgspec
import pytest

from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.validation.status import validate_status_update
from podfit.api.core.v1.pods.validation.updates import (
    prepare_ephemeral_update,
    prepare_pod_update,
    prepare_status_update,
    validate_ephemeral_update,
)
from podfit.api.defaults import apply_defaults
from podfit.api.meta.base import Object
from podfit.api.meta.codec import convert, to_dict
from podfit.api.registry import info_for, resources
from podfit.api.validation import validate_create, validate_update
from podfit.core.features import DEFAULT_GATES
from podfit.core.fields import FieldError, refusal
from podfit.decide.workload.workloads import new_job
from support import golden
from support.patches import STRATEGIC, patched

COMPLETED = ("services",)
"""Resources that the server completes before it judges: replayed in `tests/apiserver/test_golden_kinds.py`."""
KINDS = {info.path("{ns}"): info.type for info in resources() if info.stored and info.resource not in COMPLETED}
POD = "/api/v1/namespaces/{ns}/pods/u"
UID = "0c3a5f0e-1d1b-4c9e-9a53-5e1d3f0b7c11"
GO_DIFF = "\n@@"
UNORDERED = ("configmap-key-dotdot",)  # two keys of one map, which Go walks in any order; ours are sorted


def placed(manifest: Any, kind: type[Object]) -> Any:
    """Decoded, in its namespace, with its defaults."""
    given: Any = convert(manifest, kind)
    if info_for(kind).namespaced:
        metadata = msgspec.structs.replace(given.metadata, namespace=given.metadata.namespace or "golden")
        given = msgspec.structs.replace(given, metadata=metadata)
    defaulted = apply_defaults(given)
    if isinstance(defaulted, Pod) and not defaulted.spec.service_account_name:  # which admission gives it
        defaulted = msgspec.structs.replace(
            defaulted,
            spec=msgspec.structs.replace(defaulted.spec, service_account_name="default", service_account="default"),
        )
    if isinstance(defaulted, Job):
        meta = msgspec.structs.replace(defaulted.metadata, uid=UID)
        return new_job(msgspec.structs.replace(defaulted, metadata=meta))
    return defaulted


def message(obj: Any, errors: list[FieldError]) -> str:
    info = info_for(type(obj))
    if not errors:
        return ""
    return refusal(info.kind, obj.metadata.name, errors, group=info.home.group).message.replace(UID, "{uid}")


def is_create(case: golden.Case) -> bool:
    request, expect = case["request"], case["expect"]
    judged = expect["code"] == 201 or (expect["code"] == 422 and "fieldValidation" not in str(expect.get("body")))
    plain = isinstance(request.get("body"), dict) and "bodyRepeat" not in request and not case.get("setup")
    ours = case["group"] != "query" and case["id"] not in UNORDERED
    return request["method"] == "POST" and request["path"] in KINDS and judged and plain and ours


@golden.parametrize("api/validation.json", is_create)
def test_create(case: golden.Case) -> None:
    obj = placed(case["request"]["body"], KINDS[case["request"]["path"]])
    assert message(obj, validate_create(obj)) == expected(case)


def expected(case: golden.Case) -> str:
    body = case["expect"].get("body")
    return str(body["message"]).partition(GO_DIFF)[0] if case["expect"]["code"] == 422 and body else ""


def is_pod_change(case: golden.Case) -> bool:
    request = case["request"]
    return request["path"].startswith(POD) and request["method"] == "PATCH" and case["expect"]["code"] in (200, 422)


STRATEGY = {
    "pod-update-creationtimestamp": "the server keeps the creation time whatever is sent",
    "pod-update-toleration-remove": "admission adds the default tolerations again",
    "pod-update-resize-memory": "replayed with the other resizes",
}


@golden.parametrize("api/validation.json", lambda case: is_pod_change(case) and case["id"] not in STRATEGY)
def test_pod_change(case: golden.Case) -> None:
    request = case["request"]
    old = placed(next(step["body"] for step in case["setup"] if step["path"].endswith("/pods")), Pod)
    old = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, generation=1))
    new = apply_defaults(convert(patched(to_dict(old), request["body"], STRATEGIC), Pod))
    match request["path"].removeprefix(POD):
        case "/status":
            errors = validate_status_update(prepare_status_update(new, old), old)
        case "/ephemeralcontainers":
            errors = validate_ephemeral_update(prepare_ephemeral_update(new, old), old, DEFAULT_GATES)
        case _:
            errors = validate_update(prepare_pod_update(new, old), old)
    assert message(new, errors) == expected(case)


OTHERS = {
    "put-immutable",
    "put-immutable-unset",
    "immutable-secret-type",
    "immutable-rolebinding-roleref",
    "immutable-deployment-selector",
    "immutable-deployment-selector-and-template",
    "immutable-statefulset-selector",
    "immutable-daemonset-selector",
    "immutable-job-completions",
    "immutable-pdb-selector-ok",
}


@golden.parametrize("api/validation.json", lambda case: case["id"] in OTHERS)
def test_immutable(case: golden.Case) -> None:
    request, created = case["request"], case["setup"][-1]
    kind = KINDS[created["path"]]
    old = placed(created["body"], kind)
    body = request["body"]
    new = placed(body if request["method"] == "PUT" else patched(to_dict(old), body, STRATEGIC), kind)
    assert message(new, validate_update(new, old)) == expected(case)


@pytest.mark.parametrize("name", ["a" * 254, "A", "a..b", "-a", "a-", "ä", ""])
def test_bad_names_of_every_kind_are_refused(name: str) -> None:
    pod = placed({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, Pod)
    assert any(error.field == "metadata.name" for error in validate_create(pod))
