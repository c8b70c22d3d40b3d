"""Volumes as a container sees them."""

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

from kubelet.harness import IDENTITY
from kubelet.node_api import NodeApi
from podfit.api.core.v1.pods.security import PodSecurityContext
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.quantity import Quantity
from podfit.kubelet.disk.mounter import DirectoryMounter, TmpfsMounter
from podfit.kubelet.disk.writer import DiskWriter, Threads
from podfit.kubelet.sources.downward import Unsupported
from podfit.kubelet.sources.lookup import Lookup
from podfit.kubelet.volumes.atomic import File, write_payload
from podfit.kubelet.volumes.claimed import ClaimedVolumes
from podfit.kubelet.volumes.manager import MountError, Volumes
from podfit.kubelet.volumes.payloads import Payloads
from podfit.kubelet.volumes.tokens import TokenSource
from support.clock import FakeClock


@pytest.fixture
async def api() -> NodeApi:
    made = NodeApi()
    made.put("configmaps", {"metadata": {"name": "cm", "namespace": "ns"}, "data": {"a": "1", "b": "2"}})
    made.put("secrets", {"metadata": {"name": "s", "namespace": "ns"}, "data": {"k": "c2VjcmV0"}})
    return made


@pytest.fixture
async def volumes(tmp_path: Path, api: NodeApi) -> Volumes:
    return made(tmp_path, Client(Local(api, IDENTITY)), FakeClock())


def made(tmp_path: Path, client: Client, clock: FakeClock) -> Volumes:
    payloads = Payloads(Lookup(client, clock), {"cpu": Quantity.of(4)}, TokenSource(client, clock))
    return Volumes(
        tmp_path / "root", payloads, DirectoryMounter(), DiskWriter(clock, Threads()), clock.now, ClaimedVolumes(client)
    )


def pod_with(source: dict[str, Any], **mount: Any) -> Pod:
    mounts = [{"name": "v", "mountPath": "/v", **mount}]
    resources = {"limits": {"cpu": "500m"}}
    return codec.convert(
        {
            "metadata": {"name": "web", "namespace": "ns", "uid": "u", "labels": {"app": "x"}},
            "spec": {
                "volumes": [{"name": "v", **source}],
                "containers": [{"name": "c1", "volumeMounts": mounts, "resources": resources}],
            },
        },
        Pod,
    )


async def shown(volumes: Volumes, source: dict[str, Any]) -> dict[str, str]:
    path = (await volumes.mount(pod_with(source)))["v"]
    return {name: (path / name).read_text() for name in sorted(os.listdir(path)) if not name.startswith("..")}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"configMap": {"name": "cm"}}, {"a": "1", "b": "2"}),
        ({"configMap": {"name": "cm", "items": [{"key": "a", "path": "z"}]}}, {"z": "1"}),
        ({"configMap": {"name": "none", "optional": True}}, {}),
        ({"secret": {"secretName": "s"}}, {"k": "secret"}),
        ({"emptyDir": {}}, {}),
        (
            {
                "downwardAPI": {
                    "items": [
                        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                        {
                            "path": "cpu",
                            "resourceFieldRef": {"containerName": "c1", "resource": "limits.cpu", "divisor": "1m"},
                        },
                    ]
                }
            },
            {"cpu": "500", "labels": 'app="x"'},
        ),
        (
            {"projected": {"sources": [{"configMap": {"name": "cm"}}, {"secret": {"name": "s"}}]}},
            {"a": "1", "b": "2", "k": "secret"},
        ),
    ],
)
async def test_contents(volumes: Volumes, source: dict[str, Any], expected: dict[str, str]) -> None:
    assert await shown(volumes, source) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        (
            {"configMap": {"name": "cm", "items": [{"key": "no", "path": "z"}]}},
            "configmap references non-existent config key: no",
        ),
        (
            {"hostPath": {"path": "/nonexistent-x", "type": "Directory"}},
            "hostPath type check failed: /nonexistent-x is not a directory",
        ),
        ({"hostPath": {"path": "/etc", "type": "Socket"}}, "hostPath type check failed: /etc is not a socket file"),
        ({"hostPath": {"path": "/etc", "type": "File"}}, "hostPath type check failed: /etc is not a file"),
        ({"nfs": {"server": "x", "path": "/"}}, "podfit cannot mount volumes of kind nfs"),
        (
            {"projected": {"sources": [{"clusterTrustBundle": {"path": "t"}}]}},
            "podfit projects configMap, secret, downwardAPI and serviceAccountToken sources only",
        ),
    ],
)
async def test_refusals(volumes: Volumes, source: dict[str, Any], problem: str) -> None:
    with pytest.raises(MountError) as caught:
        await volumes.mount(pod_with(source))
    assert str(caught.value) == f'MountVolume.SetUp failed for volume "v" : {problem}'


async def test_a_change_replaces_all_files_by_one_rename(volumes: Volumes, api: NodeApi) -> None:
    path = (await volumes.mount(pod_with({"configMap": {"name": "cm"}})))["v"]
    before = os.readlink(path / "..data")
    api.put("configmaps", {"metadata": {"name": "cm", "namespace": "ns"}, "data": {"a": "9", "c": "3"}})
    volumes = replace(volumes, now=lambda: FakeClock().now().replace(year=2027))
    assert await shown(volumes, {"configMap": {"name": "cm"}}) == {"a": "9", "c": "3"}
    assert os.readlink(path / "..data") != before
    assert not (path / before).exists()


def test_an_unchanged_payload_is_not_written(tmp_path: Path) -> None:
    payload, now = {"dir/a": File(b"1", 0o400)}, FakeClock().now()
    assert write_payload(tmp_path, payload, now=now, own=DirectoryMounter().own)
    assert not write_payload(tmp_path, payload, now=now, own=DirectoryMounter().own)
    assert (tmp_path / "dir" / "a").stat().st_mode & 0o777 == 0o400


async def test_host_path_is_made_when_asked_for(volumes: Volumes, tmp_path: Path) -> None:
    path = tmp_path / "made" / "here"
    await volumes.mount(pod_with({"hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}))
    assert path.is_dir()


async def test_a_sub_path_stays_inside_of_its_volume(volumes: Volumes) -> None:
    pod = pod_with({"emptyDir": {}}, subPath="a/b", readOnly=True)
    paths = await volumes.mount(pod)
    mount = (await volumes.container_mounts(pod, pod.spec.containers[0], paths, {}, images={}, recursive=False))[0]
    assert (mount.host_path, mount.readonly) == (str(paths["v"] / "a" / "b"), True)
    (paths["v"] / "link").symlink_to("/etc")
    for wrong in ("../x", "link/passwd", "/etc"):
        bad = pod_with({"emptyDir": {}}, subPath=wrong)
        with pytest.raises(Unsupported, match="outside of its volume"):
            await volumes.container_mounts(bad, bad.spec.containers[0], paths, {}, images={}, recursive=False)


async def test_everything_of_a_pod_can_be_removed(volumes: Volumes) -> None:
    await volumes.mount(pod_with({"emptyDir": {}}))
    assert volumes.known() == {"u"}
    await volumes.remove("u")
    await volumes.remove("u")
    assert volumes.known() == set()


async def test_many_files_are_not_removed_in_the_event_loop(volumes: Volumes) -> None:
    """This thread removes next to none of them itself."""
    path = (await volumes.mount(pod_with({"emptyDir": {}})))["v"]
    for number in range(3_000):
        (path / f"f{number}").touch()
    removed = 0

    def count(frame: FrameType, event: str, called: object) -> None:
        nonlocal removed
        removed += event == "c_call" and called in (os.unlink, os.rmdir)

    sys.setprofile(count)
    try:
        await volumes.remove("u")
    finally:
        sys.setprofile(None)
    assert removed < 10
    assert not path.exists()
    assert volumes.known() == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_memory_is_a_tmpfs_of_the_size_asked_for_and_is_unmounted_at_the_end(volumes: Volumes) -> None:
    volumes = replace(volumes, mounter=TmpfsMounter())
    source = {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    try:
        path = (await volumes.mount(pod_with(source)))["v"]
        await volumes.mount(pod_with(source))
        assert path.is_mount()
        assert os.statvfs(path).f_blocks * os.statvfs(path).f_frsize == 1 << 20
    finally:
        await volumes.remove("u")
    assert not path.exists()


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "big", "items": [{"key": "k", "path": f"p{n}"} for n in range(40)]}},
        {"projected": {"sources": [{"configMap": {"name": "big", "items": [{"key": "k", "path": "p"}]}}] * 40}},
        {
            "downwardAPI": {
                "items": [{"path": f"p{n}", "fieldRef": {"fieldPath": "metadata.labels"}} for n in range(10_001)]
            }
        },
    ],
)
async def test_what_is_written_into_a_volume_has_a_bound(
    volumes: Volumes, api: NodeApi, source: dict[str, Any]
) -> None:
    api.put("configmaps", {"metadata": {"name": "big", "namespace": "ns"}, "data": {"k": "x" * 1_000_000}})
    with pytest.raises(MountError, match="the files of the volume take more than 33554432 bytes or 10000 files"):
        await volumes.mount(pod_with(source))


async def test_all_volumes_of_a_pod_together_have_a_bound(volumes: Volumes, api: NodeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "big", "namespace": "ns"}, "data": {"k": "x" * 1_000_000}})
    items = [{"key": "k", "path": f"p{n}"} for n in range(30)]
    many = [{"name": f"v{n}", "configMap": {"name": "big", "items": items}} for n in range(9)]
    pod = codec.convert({"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": {"volumes": many}}, Pod)
    with pytest.raises(MountError, match="the volumes of the pod take more than 134217728 bytes"):
        await volumes.mount(pod)


def test_a_payload_stays_inside_of_its_volume(tmp_path: Path) -> None:
    """What a container that could write into the volume puts there is neither read nor followed, but replaced."""
    volume, host, own = tmp_path / "v", tmp_path / "host", DirectoryMounter().own
    volume.mkdir()
    host.mkdir()
    (host / "a").write_text("1")
    payload = {"a": File(b"1", 0o644)}
    (volume / "..data").symlink_to(host)
    (volume / "..data_tmp").mkdir()
    (volume / "a").symlink_to(host / "a")
    now = FakeClock().now()
    (volume / now.strftime("..%Y_%m_%d_%H_%M_%S.%f")).symlink_to(host)
    assert write_payload(volume, payload, now=now, own=own)
    assert (volume / "..data").resolve().parent == volume
    assert os.listdir(host) == ["a"]
    (volume / "..data" / "a").unlink()
    os.mkfifo(volume / "..data" / "a")
    assert write_payload(volume, payload, now=now.replace(year=2027), own=own)
    for wrong in ("../x", "a/../../x", "/etc/x", "..data"):
        with pytest.raises(OSError, match="not a path inside of a volume"):
            write_payload(volume, {wrong: File(b"")}, now=now, own=own)


async def test_keys_and_tokens_are_read_only_and_their_directory_is_the_kubelets(volumes: Volumes) -> None:
    pod = pod_with({"configMap": {"name": "cm"}})
    paths = await volumes.mount(pod)
    assert (await volumes.container_mounts(pod, pod.spec.containers[0], paths, {}, images={}, recursive=False))[
        0
    ].readonly
    modes = [path.stat().st_mode & 0o777 for path in (volumes.root / "pods", volumes.pod_directory("u"))]
    assert modes == [0o750, 0o750]


async def test_a_container_has_at_most_a_thousand_mounts(volumes: Volumes) -> None:
    mounts = [{"name": "v", "mountPath": f"/v{n}"} for n in range(1001)]
    pod = codec.convert(
        {
            "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
            "spec": {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{"name": "c1", "volumeMounts": mounts}],
            },
        },
        Pod,
    )
    paths = await volumes.mount(pod)
    with pytest.raises(Unsupported, match="1001 volume mounts, podfit makes at most 1000"):
        await volumes.container_mounts(pod, pod.spec.containers[0], paths, {}, images={}, recursive=False)


@pytest.mark.parametrize(("source", "mode"), [("local", 0o2770), ("hostPath", 0o700)])
async def test_a_claimed_volume_is_given_to_the_group_once_and_a_shared_one_is_not(
    volumes: Volumes, api: NodeApi, tmp_path: Path, source: str, mode: int
) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    meta = {"name": "c", "namespace": "ns", "uid": "u1", "annotations": bound}
    claim = {"metadata": meta, "spec": {"volumeName": "pv"}}
    api.put("persistentvolumeclaims", claim | {"status": {"phase": "Bound"}})
    spec = {source: {"path": str(place)}, "claimRef": {"uid": "u1", "name": "c", "namespace": "ns"}}
    api.put("persistentvolumes", {"metadata": {"name": "pv"}, "spec": spec})
    plain = pod_with({"persistentVolumeClaim": {"claimName": "c"}})
    context = codec.convert({"fsGroup": 2000}, PodSecurityContext)
    pod = replace(plain, spec=replace(plain.spec, security_context=context))
    assert await volumes.mount(pod) == {"v": place}
    assert place.stat().st_mode & 0o7777 == mode
    place.chmod(0o750)
    await volumes.mount(pod, again=True)
    assert place.stat().st_mode & 0o7777 == 0o750, "only when the pod begins"
