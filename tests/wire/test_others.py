"""kr8s, lightkube and kopf, unmodified."""

import asyncio
import base64
import threading
from typing import Any

import kopf
import kr8s
import lightkube
import pytest
from kr8s.objects import Pod as Kr8sPod
from lightkube.models.core_v1 import Container, PodSpec, ResourceRequirements
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod as LightPod

from podfit.client.kubeconfig import load
from podfit.testing.cluster import Cluster
from support.eventually import PATIENCE

pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported"),  # kr8s knows up to 1.35
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets that clients leave open
]
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
}


def test_kr8s(cluster: Cluster) -> None:
    api = kr8s.api(kubeconfig=str(cluster.kubeconfig))
    pod = Kr8sPod(POD, api=api)
    pod.create()
    cluster.settle()
    pod.refresh()
    assert (pod.status.phase, pod.ready()) == ("Running", True)
    pod.label({"tier": "a"})
    found: list[Any] = list(api.get("pods", namespace="default", label_selector={"tier": "a"}))
    assert [pod.name for pod in found] == ["web"]
    patch = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}]}}
    pod.patch(patch, subresource="resize")
    cluster.settle()
    assert cluster.pod("web").allocated.cpu == 0.2
    pod.delete()
    cluster.clock.advance(60)
    assert not pod.exists()


def test_lightkube(cluster: Cluster) -> None:
    client = lightkube.Client(lightkube.KubeConfig.from_file(str(cluster.kubeconfig)), namespace="default")
    resources = ResourceRequirements(requests={"cpu": "100m"})
    container = Container(name="app", image="i", resources=resources)
    client.create(LightPod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=[container])))
    cluster.settle()
    pod = client.get(LightPod, "web")
    assert pod.status is not None
    assert pod.status.phase == "Running"
    assert [pod.metadata.name for pod in client.list(LightPod) if pod.metadata] == ["web"]
    for kind, seen in client.watch(LightPod, server_timeout=10):
        assert (kind, seen.metadata.name if seen.metadata else "") == ("ADDED", "web")
        break
    client.delete(LightPod, "web")
    cluster.clock.advance(60)
    assert list(client.list(LightPod)) == []


def test_a_kopf_operator_resizes_what_asks_for_it(cluster: Cluster) -> None:
    """It runs in a thread, and answers an annotation with a resize and with an annotation of its own."""
    registry, stop, ready = kopf.OperatorRegistry(), threading.Event(), threading.Event()

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False

    @kopf.on.event("v1", "pods", annotations={"example.com/cpu": kopf.PRESENT}, registry=registry)
    def grow(**event: Any) -> None:
        api = kr8s.api(kubeconfig=str(cluster.kubeconfig))
        requests = {"cpu": event["annotations"]["example.com/cpu"]}
        patch = {"spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]}}
        Kr8sPod.get(event["name"], namespace=event["namespace"], api=api).patch(patch, subresource="resize")

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        access = load([cluster.kubeconfig])
        ca, certificate, key = (
            base64.b64encode(pem or b"").decode() for pem in (access.authorities, access.certificate, access.key)
        )
        return kopf.ConnectionInfo(server=access.server, ca_data=ca, certificate_data=certificate, private_key_data=key)

    thread = threading.Thread(target=_operate, args=(registry, ready, stop), daemon=True)
    thread.start()
    assert ready.wait(20 * PATIENCE)
    cluster.apply(POD)
    cluster.apply({**POD, "metadata": {**POD["metadata"], "annotations": {"example.com/cpu": "300m"}}})
    for _ in range(200):
        if cluster.pod("web").allocated.cpu == 0.3:
            break
        stop.wait(0.05)
        cluster.settle()
    stop.set()
    thread.join(20 * PATIENCE)
    assert (cluster.pod("web").allocated.cpu, cluster.pod("web").restarts) == (0.3, 0)


def _operate(registry: kopf.OperatorRegistry, ready: threading.Event, stop: threading.Event) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(
        kopf.operator(registry=registry, standalone=True, namespaces=["default"], stop_flag=stop, ready_flag=ready)
    )
    loop.close()
