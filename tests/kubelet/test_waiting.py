"""Why a container does not run yet: reasons, texts, events, and when it is tried again."""

from typing import Any

import pytest

from kubelet.harness import Node, container

BAD_NAME = (
    'Failed to apply default image tag "Bad_Image:::x": couldn\'t parse image name "Bad_Image:::x": invalid reference '
    "format: repository name (library/Bad_Image) must be lowercase"
)


def waiting(node: Node) -> dict[str, str]:
    found: dict[str, str] = node.state().get("state", {}).get("waiting", {})
    return found


@pytest.mark.parametrize(
    ("container_", "reason", "message", "event"),
    [
        (
            {"image": "nosuch:1", "imagePullPolicy": "Never"},
            "ErrImageNeverPull",
            'Container image "nosuch:1" is not present with pull policy of Never',
            "Failed Error: ErrImageNeverPull",
        ),
        ({"image": "Bad_Image:::x"}, "InvalidImageName", BAD_NAME, "Failed Error: InvalidImageName"),
        (
            {"image": "registry.invalid/x:1"},
            "ErrImagePull",
            "registry.invalid/x:1: not found",
            'Failed Failed to pull image "registry.invalid/x:1": registry.invalid/x:1: not found',
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm-late", "key": "k"}}}]},
            "CreateContainerConfigError",
            'configmap "cm-late" not found',
            'Failed Error: configmap "cm-late" not found',
        ),
        (
            {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}},
            "CreateContainerConfigError",
            'container\'s runAsUser breaks non-root policy (pod: "web_default(web)", container: c1)',
            'Failed Error: container\'s runAsUser breaks non-root policy (pod: "web_default(web)", container: c1)',
        ),
    ],
)
async def test_reasons(node: Node, container_: dict[str, Any], reason: str, message: str, event: str) -> None:
    node.add(containers=[container("c1", **container_)])
    await node.until(lambda: waiting(node).get("reason") == reason)
    assert waiting(node)["message"] == message
    await node.until(lambda: event in node.api.events())
    assert node.phase() == "Pending"


async def test_an_image_that_cannot_be_pulled_backs_off_and_then_comes(node: Node) -> None:
    image = "registry.invalid/x:1"
    node.add(containers=[container("c1", image=image)])
    await node.until(lambda: waiting(node).get("reason") == "ErrImagePull")
    await node.advance(1.5)
    await node.until(lambda: waiting(node).get("reason") == "ImagePullBackOff")
    assert waiting(node)["message"] == f'Back-off pulling image "{image}": ErrImagePull: {image}: not found'
    node.runtime.pullable.add(image)
    await node.advance(10)
    await node.runs()
    assert any(event.startswith(f'Pulled Successfully pulled image "{image}" in ') for event in node.api.events())


async def test_a_missing_config_map_that_is_made_later_lets_the_container_start(node: Node) -> None:
    node.add(
        containers=[
            container("c1", env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}])
        ]
    )
    await node.until(lambda: waiting(node).get("reason") == "CreateContainerConfigError")
    node.api.put("configmaps", {"metadata": {"name": "late", "namespace": "default"}, "data": {"k": "v"}})
    await node.advance(16)
    await node.runs()
    assert node.runtime.config("c1").envs == (("HOSTNAME", "web"), ("A", "v"))


async def test_a_missing_volume_source_keeps_the_pod_creating_and_is_tried_again(node: Node) -> None:
    node.add(volumes=[{"name": "v", "configMap": {"name": "no-such"}}])
    text = 'FailedMount MountVolume.SetUp failed for volume "v" : configmap "no-such" not found'
    await node.until(lambda: text in node.api.events())
    assert waiting(node)["reason"] == "ContainerCreating"
    assert not node.runtime.boxes
    node.api.put("configmaps", {"metadata": {"name": "no-such", "namespace": "default"}, "data": {"k": "v"}})
    await node.advance(0.5)
    await node.runs()


async def test_a_volume_that_podfit_cannot_mount_is_named(node: Node) -> None:
    node.add(volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}])
    text = 'FailedMount MountVolume.SetUp failed for volume "v" : podfit cannot mount volumes of kind nfs'
    await node.until(lambda: text in node.api.events())


async def test_a_command_that_cannot_be_run(node: Node) -> None:
    node.runtime.fail["start"] = 'exec: "/no/such": no such file or directory'
    node.add()
    await node.until(lambda: waiting(node).get("reason") == "RunContainerError")
    await node.advance(1.5)
    await node.until(lambda: waiting(node).get("reason") == "CrashLoopBackOff")
    assert node.state()["lastState"]["terminated"]["exitCode"] == 128
    node.runtime.fail.clear()
    await node.advance(10)
    await node.runs()


async def test_a_runtime_that_was_away_is_asked_again(node: Node) -> None:
    node.runtime.fail["sandbox"] = "connection refused"
    node.add()
    text = "FailedCreatePodSandBox Failed to create pod sandbox: connection refused"
    await node.until(lambda: text in node.api.events())
    node.runtime.fail.clear()
    await node.advance(15)
    await node.runs()
    assert node.state()["restartCount"] == 0


async def test_a_pod_can_be_deleted_while_its_image_is_missing(node: Node) -> None:
    node.add(containers=[container("c1", image="registry.invalid/x:1")])
    await node.until(lambda: waiting(node).get("reason") == "ErrImagePull")
    node.api.delete("web", 2)
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert not node.runtime.boxes


async def test_a_sleep_before_the_end_is_part_of_the_grace_period(node: Node) -> None:
    node.add(containers=[container("c1", lifecycle={"preStop": {"sleep": {"seconds": 4}}})])
    await node.runs()
    node.api.delete("web", 10)
    await node.rest()
    assert "stop c1 6s" not in node.runtime.calls
    await node.advance(4)
    await node.until(lambda: "stop c1 6s" in node.runtime.calls)


async def test_a_name_that_is_no_name_of_a_directory_is_told(node: Node) -> None:
    """The directory of logs is named after namespace, pod and uid, as upstream's: 253 letters are too many for that."""
    node.add("a" * 253, containers=[container("c1")])
    text = "FailedCreatePodSandBox Failed to create pod sandbox: [Errno 36] File name too long"
    await node.until(lambda: any(event.startswith(text) for event in node.api.events()))
