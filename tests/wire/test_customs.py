"""Foreign clients, unmodified, with a kind that a cluster declares: the official client, kr8s, and a kopf operator."""

import asyncio
import base64
import threading
from collections.abc import Callable, Iterator
from typing import Any

import kopf
import kr8s
import pytest
from kr8s.objects import new_class
from kubernetes import client, config, dynamic, watch

from podfit.client.kubeconfig import load
from podfit.testing.cluster import Cluster
from support.eventually import eventually

pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported"),  # kr8s knows up to 1.35
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets that clients leave open
]
GROUP, VERSION, PLURAL = "example.com", "v1", "sizings"
PLACE = (GROUP, VERSION, "default", PLURAL)
SECONDS = 60.0  # for one answer, and for the operator to come to one state; the machine may be busy
STEP = 0.05
BOUNDED: dict[str, Any] = {"_request_timeout": SECONDS}  # the official client waits for ever of its own
NUMBER, TEXT = {"type": "integer", "minimum": 1}, {"type": "string"}
STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
SPEC = {"type": "object", "required": ["replicas"], "properties": {"replicas": NUMBER, "note": TEXT}}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": "sizing", "kind": "Sizing"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
                "subresources": {"status": {}, "scale": SCALE},
            }
        ],
    },
}
SIZING: dict[str, Any] = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "Sizing",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"replicas": 1},
}


@pytest.fixture
def api(cluster: Cluster) -> Iterator[client.ApiClient]:
    configured: Any = config
    with configured.new_client_from_config(str(cluster.kubeconfig)) as made:
        definitions: Any = client.ApiextensionsV1Api(made)
        definitions.create_custom_resource_definition(DEFINITION, **BOUNDED)
        yield made


def test_the_official_client(api: client.ApiClient) -> None:
    objects: Any = client.CustomObjectsApi(api)
    made = objects.create_namespaced_custom_object(*PLACE, SIZING)
    assert (made["metadata"]["generation"], made["spec"]) == (1, {"replicas": 1})
    with pytest.raises(client.ApiException, match="should be greater than or equal to 1"):
        objects.patch_namespaced_custom_object(*PLACE, "a", {"spec": {"replicas": 0}})
    objects.patch_namespaced_custom_object_status(*PLACE, "a", {"status": {"replicas": 1}})
    scaled = objects.patch_namespaced_custom_object_scale(*PLACE, "a", {"spec": {"replicas": 4}})
    assert (scaled["kind"], scaled["spec"], scaled["status"]) == ("Scale", {"replicas": 4}, {"replicas": 1})
    listed = objects.list_namespaced_custom_object(*PLACE)
    assert [item["spec"]["replicas"] for item in listed["items"]] == [4]
    watching: Any = watch.Watch
    for event in watching().stream(objects.list_namespaced_custom_object, *PLACE, timeout_seconds=20):
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        break
    kind: Any = dynamic.DynamicClient
    found = kind(api).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Sizing")
    assert found.get(name="a", namespace="default").spec.replicas == 4
    objects.delete_namespaced_custom_object(*PLACE, "a")
    assert objects.list_namespaced_custom_object(*PLACE)["items"] == []


@pytest.mark.usefixtures("api")
def test_kr8s(cluster: Cluster) -> None:
    access = kr8s.api(kubeconfig=str(cluster.kubeconfig))
    kind: Any = new_class(kind="Sizing", version=f"{GROUP}/{VERSION}", namespaced=True, scalable=True, asyncio=False)
    sizing = kind(SIZING, api=access)
    sizing.create()
    sizing.patch({"spec": {"note": "seen"}})
    sizing.scale(3)
    sizing.refresh()
    assert (sizing.spec.note, sizing.spec.replicas) == ("seen", 3)
    listed: list[Any] = list(access.get("sizings", namespace="default"))
    assert [waffle.name for waffle in listed] == ["a"]
    sizing.delete()
    assert not sizing.exists()


def test_a_kopf_operator(cluster: Cluster, api: client.ApiClient) -> None:
    """It keeps its state in the object's status and annotations, and holds it with a finalizer."""
    registry, stop, ready = kopf.OperatorRegistry(), threading.Event(), threading.Event()
    told: list[str] = []

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False

    @kopf.on.create(GROUP, VERSION, PLURAL, id="created", registry=registry)
    def created(**event: Any) -> dict[str, Any]:
        event["patch"].status["replicas"] = event["spec"]["replicas"]
        return {"seen": True}

    @kopf.on.field(GROUP, VERSION, PLURAL, field="spec.replicas", old=kopf.PRESENT, registry=registry)
    def resized(**event: Any) -> None:
        event["patch"].status["replicas"] = event["new"]

    @kopf.on.delete(GROUP, VERSION, PLURAL, registry=registry)
    def deleted(**event: Any) -> None:
        told.append(event["name"])

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        access = load([cluster.kubeconfig])
        ca, certificate, key = (
            base64.b64encode(pem or b"").decode() for pem in (access.authorities, access.certificate, access.key)
        )
        return kopf.ConnectionInfo(server=access.server, ca_data=ca, certificate_data=certificate, private_key_data=key)

    objects: Any = client.CustomObjectsApi(api)

    def status() -> dict[str, Any]:
        found: dict[str, Any] = objects.get_namespaced_custom_object(*PLACE, "a", **BOUNDED)
        return dict(found.get("status", {}))

    def until(wanted: Callable[[], bool], what: str) -> None:
        """The operator lives in real time, so the cluster's passes with it: what the server puts off does come."""

        def look() -> bool:
            if not (seen := wanted()):
                cluster.clock.advance(STEP)
            return seen

        eventually(look, within=SECONDS, what=what, told=lambda: str(status()), every=STEP)

    thread = threading.Thread(target=_operate, args=(registry, ready, stop), daemon=True)
    thread.start()
    try:
        assert ready.wait(SECONDS)
        objects.create_namespaced_custom_object(*PLACE, SIZING, **BOUNDED)
        until(lambda: status().get("replicas") == 1 and status().get("created") == {"seen": True}, "it is seen")
        objects.patch_namespaced_custom_object(*PLACE, "a", {"spec": {"replicas": 5}}, **BOUNDED)
        until(lambda: status().get("replicas") == 5, "the operator has resized it")
        objects.delete_namespaced_custom_object(*PLACE, "a", **BOUNDED)
        until(lambda: not objects.list_namespaced_custom_object(*PLACE, **BOUNDED)["items"], "it is gone")
    finally:
        stop.set()
        thread.join(SECONDS)
    assert not thread.is_alive(), "the operator does not end"
    assert told == ["a"]


def _operate(registry: kopf.OperatorRegistry, ready: threading.Event, stop: threading.Event) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(
        kopf.operator(registry=registry, standalone=True, namespaces=["default"], stop_flag=stop, ready_flag=ready)
    )
    loop.close()
