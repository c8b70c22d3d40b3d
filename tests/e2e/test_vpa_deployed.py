"""deploy/vpa on podfit's own node: the image that scripts/image.py builds, as Deployments with the least of rights."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from support.eventually import PATIENCE, eventually
from support.up import PODFIT, Up, run
from support.vpa_processes import RECOMMENDER, SOON, deployment, vpa

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(180),
    pytest.mark.skipif(not Path("/usr/bin/python3.11").exists(), reason="the image is made of /usr/bin/python3.11"),
]
ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy" / "vpa"
NOBODY = 65534
PROCESSES = ("recommender", "updater", "admission-controller")
BUSY = "trap 'exit 0' TERM; while :; do :; done"
Pod = dict[str, Any]


def overlay(folder: Path, **flags: tuple[str, ...]) -> Path:
    """The base with more flags, as somebody who installs it writes them."""
    patches = [
        {
            "target": {"kind": "Deployment", "name": f"vpa-{name}"},
            "patch": json.dumps(
                [
                    {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": f"{flag}={value}"}
                    for flag, value in zip(words[::2], words[1::2], strict=True)
                ]
            ),
        }
        for name, words in flags.items()
    ]
    folder.mkdir()
    (folder / "base").symlink_to(BASE)
    written = {"resources": ["base"], "patches": patches}
    (folder / "kustomization.yaml").write_text(json.dumps(written))
    return folder


def until(up: Up, holds: Callable[[Pod], bool], seconds: float) -> Pod:
    """The pod of the Deployment `busy`, once that holds."""

    def look() -> list[Pod]:
        pods: list[Pod] = json.loads(up.ok("get", "pods", "-l", "app=busy", "-o", "json"))["items"]
        live = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return [pod for pod in live if pod["status"].get("containerStatuses")]

    told_by = partial(told, up)
    pods = eventually(look, lambda pods: any(map(holds, pods)), within=seconds, what="the pod is so", told=told_by)
    return next(pod for pod in pods if holds(pod))


def told(up: Up) -> str:
    return "".join(
        up.kubectl("logs", "-n", "kube-system", f"deployment/vpa-{name}", "--tail=30").out for name in PROCESSES
    )


def users() -> Iterator[int]:
    """Of the processes in containers of the image."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # one that has ended meanwhile
            if b"-m\0podfit.cli\0vpa\0" in (process / "cmdline").read_bytes():
                yield process.stat().st_uid


def requested(pod: Pod) -> int:
    """Millicores."""
    return Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]).milli()


def test_vpa_deployed_by_kustomize_recommends_resizes_and_admits(cluster_dir: Up, tmp_path: Path) -> None:
    up, archive = cluster_dir, tmp_path / "podfit.tar"
    up.start("--no-vpa")
    up.apply(deployment("busy", BUSY, {"requests": {"cpu": "10m", "memory": "250Mi"}, "limits": {"cpu": "200m"}}))
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "image.py", "--unpacked", archive], check=True, timeout=100 * PATIENCE
    )
    loaded = run(PODFIT, "image", "load", str(archive), "--data", str(up.root))
    assert loaded.code == 0, loaded.err
    up.ok("apply", "-k", str(overlay(tmp_path / "vpa", recommender=RECOMMENDER, updater=SOON)))
    for name in PROCESSES:
        up.ok("rollout", "status", "-n", "kube-system", f"deployment/vpa-{name}", "--timeout=60s", timeout=70)
    assert sorted(users()) == [NOBODY] * len(PROCESSES)
    up.apply(vpa("busy"))
    resized = until(up, lambda pod: requested(pod) > 100, 30)
    assert resized["status"]["containerStatuses"][0]["restartCount"] == 0
    up.ok("delete", "pod", resized["metadata"]["name"], "--wait=false")
    anew = until(up, lambda pod: pod["metadata"]["uid"] != resized["metadata"]["uid"], 30)
    assert requested(anew) > 100, told(up)
    assert "Pod resources updated by busy" in anew["metadata"]["annotations"]["vpaUpdates"]
