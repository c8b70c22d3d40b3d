"""Images of a registry that asks who pulls, on a real node: credentials of imagePullSecrets, right and wrong."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.kubelet.runtime import images
from support.registry import Served, registry
from support.up import Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
USER, PASSWORD = "ann", "right"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    busybox = images.busybox_recipe()
    recipe = replace(busybox, directories=(*busybox.directories, "pulled"))  # another image than the built-in one
    with registry(images.archive(recipe, tmp_path_factory.mktemp("registry")), user=USER, password=PASSWORD) as found:
        yield found


def secret(served: Served, password: str) -> dict[str, Any]:
    config = {"auths": {served.host: {"username": USER, "password": password}}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()},
    }


def waiting(pod: dict[str, Any]) -> dict[str, str]:
    statuses = pod["status"].get("containerStatuses", [])
    found: dict[str, str] = statuses[0]["state"].get("waiting", {}) if statuses else {}
    return found


def told(up: Up, pod: str) -> list[tuple[str, str]]:
    events = json.loads(up.ok("get", "events", "--field-selector", f"involvedObject.name={pod}", "-o", "json"))["items"]
    return [(event["reason"], event["message"]) for event in events]


def test_an_image_is_pulled_with_the_credentials_of_a_pods_secret(cluster: Up, served: Served) -> None:
    image = f"{served.host}/team/app:1"
    cluster.apply(
        secret(served, PASSWORD), manifest("pulls", {"name": "c", "image": image}, imagePullSecrets=[{"name": "pull"}])
    )
    pod = cluster.pod_when("pulls", running, "ran")
    assert "/v2/team/app/manifests/1" in served.asked
    assert pod["status"]["containerStatuses"][0]["imageID"].startswith(f"{served.host}/team/app@sha256:")
    assert cluster.ok("exec", "pulls", "--", "ls", "-d", "/pulled") == "/pulled\n"
    reasons = [reason for reason, _ in told(cluster, "pulls")]
    assert reasons == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]
    cluster.ok("delete", "pod", "pulls", "--now")


def test_wrong_credentials_are_told_and_right_ones_are_taken_when_the_back_off_is_over(
    cluster: Up, served: Served
) -> None:
    image = f"{served.host}/team/other:1"
    refused = served.refused
    cluster.apply(
        secret(served, "wrong"), manifest("wrong", {"name": "c", "image": image}, imagePullSecrets=[{"name": "pull"}])
    )
    first = waiting(cluster.pod_when("wrong", lambda pod: waiting(pod).get("reason") == "ErrImagePull", "was refused"))
    assert image in first["message"]
    assert "401 Unauthorized" in first["message"]
    assert served.refused > refused
    pod = cluster.pod_when("wrong", lambda pod: waiting(pod).get("reason") == "ImagePullBackOff", "was put off")
    assert waiting(pod)["message"].startswith(f'Back-off pulling image "{image}": ErrImagePull: ')
    events = told(cluster, "wrong")
    assert ("BackOff", f'Back-off pulling image "{image}"') in events
    assert ("Failed", "Error: ErrImagePull") in events
    assert ("Failed", "Error: ImagePullBackOff") in events
    assert any(message.startswith(f'Failed to pull image "{image}": ') for _, message in events)
    cluster.apply(secret(served, PASSWORD))
    cluster.pod_when("wrong", running, "ran with the right credentials")
    cluster.ok("delete", "pod", "wrong", "--now")
    cluster.ok("delete", "secret", "pull")
