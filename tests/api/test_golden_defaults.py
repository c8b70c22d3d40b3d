"""Defaults of every kind against what a real API server stored for the same manifest."""

from typing import Any

import msgspec

from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.disabled import without_disabled
from podfit.api.core.v1.pods.types import Pod
from podfit.api.defaults import apply_defaults
from podfit.api.meta.base import Object
from podfit.api.meta.codec import convert, to_dict
from podfit.api.registry import resources
from podfit.decide.workload.workloads import new_job
from support import golden

COMPLETED = ("services", "persistentvolumeclaims")
"""Resources that the server completes beyond defaults: replayed in `tests/apiserver/test_golden_kinds.py`."""
KINDS = {info.path("{ns}"): info.type for info in resources() if info.stored and info.resource not in COMPLETED}
DEVIATIONS = {"pod-limitrange-defaults": "LimitRanger is admission"}
ADMISSION_TAINT = "node.kubernetes.io/not-ready"


def replayable(case: golden.Case) -> bool:
    request, expect = case["request"], case["expect"]
    return request["method"] == "POST" and expect["code"] == 201 and request["path"] in KINDS and "body" in request


@golden.parametrize("api/defaulting.json", lambda case: replayable(case) and case["id"] not in DEVIATIONS)
def test_defaults(case: golden.Case) -> None:
    kind: type[Object] = KINDS[case["request"]["path"]]
    defaulted = apply_defaults(convert(case["request"]["body"], kind))
    assert apply_defaults(defaulted) is defaulted
    if isinstance(defaulted, Pod):
        defaulted = without_disabled(defaulted)
    if isinstance(defaulted, Job):  # whose selector follows from its uid
        meta = msgspec.structs.replace(defaulted.metadata, uid="{uid}")
        defaulted = new_job(msgspec.structs.replace(defaulted, metadata=meta))
    given = to_dict(defaulted)
    expected = without_admission(case["expect"]["body"], case["request"]["body"])
    assert comparable(given) == comparable(expected)


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    """Without what the server's strategy and its controllers own: identity, and status of anything but a node."""
    kept = {key: value for key, value in document.items() if key not in ("metadata", "status")}
    if document["kind"] == "Node":
        kept["status"] = document["status"]
    if document["kind"] == "Namespace":
        kept["labels"] = document["metadata"]["labels"]
        del kept["spec"]
    return kept


def without_admission(stored: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    if stored["kind"] == "Pod":
        stored = {**stored, "spec": _pod_spec(stored["spec"], sent["spec"])}
    if stored["kind"] == "Node":
        taints = [taint for taint in stored["spec"]["taints"] if taint["key"] != ADMISSION_TAINT]
        spec = {key: value for key, value in stored["spec"].items() if key != "taints"}
        stored = {**stored, "spec": spec | ({"taints": taints} if taints else {})}
    return stored


def _pod_spec(stored: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """Take back the service account, its volume, priority and the default tolerations."""
    spec = dict(stored)
    for key in ("priority", "preemptionPolicy", "tolerations", "serviceAccountName", "serviceAccount"):
        if key not in sent:
            spec.pop(key, None)
    if "serviceAccountName" in sent:
        spec["serviceAccount"] = sent["serviceAccountName"]
    if "tolerations" in sent:
        spec["tolerations"] = sent["tolerations"]
    for key in ("containers", "initContainers", "ephemeralContainers"):
        if key in spec:
            spec[key] = [_without_token(container) for container in spec[key]]
    volumes = [volume for volume in spec.get("volumes", []) if "{rand}" not in volume["name"]]
    spec.pop("volumes", None)
    return spec | ({"volumes": volumes} if volumes else {})


def _without_token(container: dict[str, Any]) -> dict[str, Any]:
    mounts = [mount for mount in container.get("volumeMounts", []) if "{rand}" not in mount["name"]]
    kept = {key: value for key, value in container.items() if key != "volumeMounts"}
    return kept | ({"volumeMounts": mounts} if mounts else {})
