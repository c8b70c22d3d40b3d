"""What admission adds and refuses, with inputs that are in no recording.

Known from upstream's plugins: Priority, DefaultIngressClass, PersistentVolumeClaimResize, PodTopologyLabels.
"""

from typing import Any

import pytest

from support.rules import NAMESPACE, PODS, Answer, asked, made, pod
from support.server import Server

MERGE = "application/merge-patch+json"
INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
DEFAULT = {"ingressclass.kubernetes.io/is-default-class": "true"}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


async def _with_classes(server: Server) -> None:
    await server.namespace(NAMESPACE)
    meek = {"metadata": {"name": "meek"}, "value": 7, "preemptionPolicy": "Never"}
    await made(server, "/apis/scheduling.k8s.io/v1/priorityclasses", meek)


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"preemptionPolicy": "Never"}, "PreemptionPolicy (Never)"),
        ({"preemptionPolicy": "PreemptLowerPriority"}, ""),
        ({"priorityClassName": "meek"}, ""),
        ({"priorityClassName": "meek", "preemptionPolicy": "Never"}, ""),
        ({"priorityClassName": "meek", "priority": 7}, ""),
        ({"priorityClassName": "meek", "priority": 8}, "priority (8)"),
        ({"priorityClassName": "meek", "preemptionPolicy": "PreemptLowerPriority"}, "(PreemptLowerPriority)"),
        ({"priorityClassName": "meek", "preemptionPolicy": "Sometimes"}, "computed Never"),
        ({"preemptionPolicy": "Sometimes"}, "computed PreemptLowerPriority"),
        ({"priority": 0}, ""),
    ],
)
async def test_priorities_are_those_of_the_class(server: Server, spec: dict[str, Any], refused: str) -> None:
    await _with_classes(server)
    answer = await asked(server, "POST", PODS, pod(**spec))
    assert (answer.code, refused in answer.message) == (403 if refused else 201, True), answer


async def test_an_update_that_leaves_the_priority_out_keeps_it(server: Server) -> None:
    await _with_classes(server)
    (whole,) = await made(server, PODS, pod(priorityClassName="meek"))
    del whole["spec"]["priority"], whole["spec"]["preemptionPolicy"]
    answer = await asked(server, "PUT", f"{PODS}/p", whole)
    assert (answer.code, answer.body["spec"]["priority"], answer.body["spec"]["preemptionPolicy"]) == (200, 7, "Never")


def _ingress(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": "i", "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"defaultBackend": BACKEND} | spec}


@pytest.mark.parametrize(
    ("classes", "ingress", "wanted"),
    [
        ({}, _ingress(), None),
        ({"a": {}}, _ingress(), None),
        ({"a": {}, "b": DEFAULT}, _ingress(), "b"),
        ({"c": DEFAULT, "b": DEFAULT}, _ingress(), "b"),
        ({"b": DEFAULT}, _ingress(ingressClassName="other"), "other"),
        ({"b": DEFAULT}, _ingress({"kubernetes.io/ingress.class": "nginx"}), None),
        ({"b": {"ingressclass.kubernetes.io/is-default-class": "yes"}}, _ingress(), None),
    ],
)
async def test_ingresses_get_the_default_class(
    server: Server, classes: dict[str, Any], ingress: dict[str, Any], wanted: str | None
) -> None:
    await server.namespace(NAMESPACE)
    for name, annotations in classes.items():
        body = {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": "example.com/c"}}
        await made(server, "/apis/networking.k8s.io/v1/ingressclasses", body)
    (found,) = await made(server, INGRESSES, ingress)
    assert found["spec"].get("ingressClassName") == wanted


async def _grown(server: Server, *, expansion: bool | None, named: str | None, size: str) -> Answer:
    await server.namespace(NAMESPACE)
    storage = {"metadata": {"name": "fast"}, "provisioner": "x.y/z", "allowVolumeExpansion": expansion}
    await made(server, "/apis/storage.k8s.io/v1/storageclasses", storage)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": named}
    await made(server, CLAIMS, {"metadata": {"name": "c"}, "spec": spec | {"volumeName": "v"}})
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert (await asked(server, "PATCH", f"{CLAIMS}/c/status", status, content_type=MERGE)).code == 200
    wish = {"spec": {"resources": {"requests": {"storage": size}}}}
    return await asked(server, "PATCH", f"{CLAIMS}/c", wish, content_type=MERGE)


@pytest.mark.parametrize(
    ("expansion", "named", "size", "code"),
    [
        (True, "fast", "2Gi", 200),
        (False, "fast", "2Gi", 403),
        (None, "fast", "2Gi", 403),
        (True, "", "2Gi", 403),
        (True, "gone", "2Gi", 403),
        (None, "fast", "1Gi", 200),
        (None, "fast", "1024Mi", 200),
    ],
)
async def test_claims_grow_where_their_class_says_so(
    server: Server, expansion: bool | None, named: str | None, size: str, code: int
) -> None:
    answer = await _grown(server, expansion=expansion, named=named, size=size)
    assert (answer.code, "only dynamically provisioned pvc" in answer.message) == (code, code == 403), answer


@pytest.mark.parametrize(
    ("of_node", "own", "wanted"),
    [
        ({"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r", "other": "x"}, {}, ("z1", "r")),
        ({"topology.kubernetes.io/zone": "z1"}, {"topology.kubernetes.io/zone": "mine"}, ("z1", None)),
        ({}, {"topology.kubernetes.io/zone": "mine"}, ("mine", None)),
    ],
)
async def test_placed_pods_say_where_their_node_is(
    server: Server, of_node: dict[str, str], own: dict[str, str], wanted: tuple[str | None, str | None]
) -> None:
    await server.namespace(NAMESPACE)
    await made(server, "/api/v1/nodes", {"metadata": {"name": "m", "labels": of_node}})
    await made(server, PODS, pod() | {"metadata": {"name": "p", "labels": own}})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "m"}}
    assert (await asked(server, "POST", f"{PODS}/p/binding", binding)).code == 201
    labels = (await asked(server, "GET", f"{PODS}/p")).body["metadata"].get("labels", {})
    found = tuple(labels.get(f"topology.kubernetes.io/{name}") for name in ("zone", "region"))
    assert (found, "other" in labels) == (wanted, False)


async def test_a_gated_pod_is_not_placed(server: Server) -> None:
    await server.namespace(NAMESPACE)
    await made(server, PODS, pod(schedulingGates=[{"name": "example.com/wait"}]))
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "m"}}
    answer = await asked(server, "POST", f"{PODS}/p/binding", binding)
    assert (answer.code, answer.message.endswith("pod p has non-empty .spec.schedulingGates")) == (409, True)


async def test_a_node_registers_with_its_status(server: Server) -> None:
    status = {"capacity": {"cpu": "4"}, "nodeInfo": {"kubeletVersion": "v1.36.2"}}
    (node,) = await made(server, "/api/v1/nodes", {"metadata": {"name": "m"}, "status": status})
    assert node["status"]["capacity"] == node["status"]["allocatable"] == {"cpu": "4"}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"


async def test_there_is_one_default_priority(server: Server) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    one = {"metadata": {"name": "one"}, "value": 1, "globalDefault": True}
    await made(server, classes, one, one | {"metadata": {"name": "two"}, "globalDefault": False})
    text = "is forbidden: PriorityClass one is already marked as default. Only one default can exist"
    three = await asked(server, "POST", classes, one | {"metadata": {"name": "three"}})
    two = await asked(server, "PATCH", f"{classes}/two", {"globalDefault": True}, content_type=MERGE)
    same = await asked(server, "PATCH", f"{classes}/one", {"description": "x"}, content_type=MERGE)
    assert (three.code, two.code, same.code) == (403, 403, 200)
    assert three.message == f'priorityclasses.scheduling.k8s.io "three" {text}'
    assert two.message == f'priorityclasses.scheduling.k8s.io "two" {text}'
