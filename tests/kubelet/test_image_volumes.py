"""Volumes that are images: pulled first, mounted by the runtime, refused by name where it is too old."""

from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.test_probes import told
from kubelet.test_pull_secrets import add_secret
from podfit.kubelet.images.image_volumes import lacking
from podfit.kubelet.runtime.configs import Mount
from podfit.kubelet.runtime.labels import IMAGE_VOLUMES
from podfit.kubelet.runtime.types import Version

IMAGE = "registry.io/team/data:1"


def add(node: Node, *, policy: str = "IfNotPresent", **mount: Any) -> None:
    mounts = [{"name": "v", "mountPath": "/v", **mount}]
    volumes = [{"name": "v", "image": {"reference": IMAGE, "pullPolicy": policy}}]
    node.add(volumes=volumes, containers=[container("c1", volumeMounts=mounts)], imagePullSecrets=[{"name": "s"}])


def mounted(node: Node) -> Mount:
    return next(mount for mount in node.runtime.config("c1").mounts if mount.container_path == "/v")


def waiting(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.state().get("state", {}).get("waiting", {})
    return found


async def test_an_image_is_pulled_and_mounted_by_the_runtime(node: Node) -> None:
    node.runtime.pullable.add(IMAGE)
    node.runtime.guarded[IMAGE] = "right"
    add_secret(node, "s", **{"registry.io": {"username": "ann", "password": "right"}})
    add(node, subPath="etc")
    await node.runs()
    assert f"pull {IMAGE} as ann" in node.runtime.calls
    mount = mounted(node)
    assert (mount.host_path, mount.image_sub_path, mount.readonly) == ("", "etc", True)
    assert mount.image == node.runtime.images[IMAGE].id
    assert node.runtime.config("c1").annotations[IMAGE_VOLUMES] == mount.image, "so it is not collected"


async def test_an_image_that_cannot_be_pulled_keeps_its_container_waiting(node: Node) -> None:
    add(node)
    await node.until(lambda: waiting(node).get("reason") == "ErrImagePull")
    assert IMAGE in waiting(node)["message"]


async def test_an_image_that_may_not_be_pulled_has_to_be_there(node: Node) -> None:
    add(node, policy="Never")
    await node.until(lambda: waiting(node).get("reason") == "ErrImageNeverPull")


async def test_a_runtime_that_is_too_old_is_named(node: Node) -> None:
    node.runtime.told_version = Version(runtime_name="containerd", runtime_version="1.6.20~ds1", api_version="v1")
    add(node)
    await node.until(lambda: waiting(node).get("reason") == "CreateContainerConfigError")
    text = 'volume "v": image volumes need containerd 2.1 or later, this node has 1.6.20~ds1'
    assert waiting(node)["message"] == text
    assert told(node, "Failed")[0] == f"Failed Error: {text}"


@pytest.mark.parametrize(
    ("name", "version", "has"),
    [
        ("containerd", "v2.0.5", False),
        ("containerd", "v2.1.0", True),
        ("containerd", "2.4.0-beta", True),
        ("cri-o", "1.30.1", False),
        ("cri-o", "1.33.0", True),
        ("other", "0.1", True),
        ("containerd", "unknown", True),
    ],
)
def test_who_has_image_volumes(name: str, version: str, has: bool) -> None:
    assert (lacking(Version(runtime_name=name, runtime_version=version, api_version="v1")) == "") is has
