"""The official Python client, unmodified: typed, dynamic, watch."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, dynamic, watch

from podfit.testing.cluster import Cluster

# Sockets that the client leaves open are its own matter.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
}
GROWN = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}]}}


@pytest.fixture
def api(cluster: Cluster) -> Iterator[client.ApiClient]:
    configured: Any = config
    with configured.new_client_from_config(str(cluster.kubeconfig)) as made:
        yield made


def test_typed_objects_are_created_resized_and_deleted(cluster: Cluster, api: client.ApiClient) -> None:
    core: Any = client.CoreV1Api(api)
    core.create_namespaced_pod("default", POD)
    cluster.settle()
    pod = core.read_namespaced_pod("web", "default")
    assert (pod.status.phase, pod.spec.node_name) == ("Running", "simulated-1")
    core.patch_namespaced_pod_resize("web", "default", GROWN)
    cluster.settle()
    status = core.read_namespaced_pod("web", "default").status.container_statuses[0]
    assert (status.allocated_resources["cpu"], status.restart_count) == ("200m", 0)
    core.delete_namespaced_pod("web", "default")
    cluster.clock.advance(60)
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_pod("web", "default")
    assert missing.value.status == 404


def test_lists_are_selected_and_paged(cluster: Cluster, api: client.ApiClient) -> None:
    core: Any = client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map("default", {"metadata": {"name": f"m{number}", "labels": {"n": str(number)}}})
    first = core.list_namespaced_config_map("default", limit=2)
    rest = core.list_namespaced_config_map("default", limit=10, _continue=first.metadata._continue)
    names = [obj.metadata.name for obj in (*first.items, *rest.items)]
    assert [name for name in names if name.startswith("m")] == [f"m{number}" for number in range(5)]
    chosen = core.list_namespaced_config_map("default", label_selector="n in (1,3)")
    assert [obj.metadata.name for obj in chosen.items] == ["m1", "m3"]


def test_a_watch_tells_what_happens(cluster: Cluster, api: client.ApiClient) -> None:
    core: Any = client.CoreV1Api(api)
    version = core.list_namespaced_pod("default").metadata.resource_version
    cluster.apply(POD)
    seen = []
    options = {"resource_version": version, "timeout_seconds": 20}
    watching: Any = watch.Watch
    for event in watching().stream(core.list_namespaced_pod, "default", **options):
        seen.append((event["type"], event["object"].status.phase))
        if seen[-1][1] == "Running":
            break
    assert seen[0] == ("ADDED", "Pending")


def test_the_dynamic_client_finds_its_resources_by_discovery(cluster: Cluster, api: client.ApiClient) -> None:
    kind: Any = dynamic.DynamicClient
    found = kind(api)
    pods = found.resources.get(api_version="v1", kind="Pod")
    found.create(pods, body=POD, namespace="default")
    cluster.settle()
    assert pods.get(name="web", namespace="default").status.phase == "Running"
    pods.server_side_apply(
        body=POD | {"metadata": {"name": "web", "labels": {"tier": "a"}}},
        namespace="default",
        name="web",
        field_manager="tests",
        force_conflicts=True,
    )
    assert dict(pods.get(name="web", namespace="default").metadata.labels)["tier"] == "a"
    events = found.resources.get(api_version="v1", kind="Event")
    assert {event.reason for event in events.get(namespace="default").items} >= {"Scheduled", "Started"}
