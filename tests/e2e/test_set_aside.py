"""`podfit up` is ended twice by a pod: the third start runs and says so."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eventually import process_ended
from support.up import PODFIT, Up, manifest, run

pytestmark = [pytest.mark.node, pytest.mark.kubectl]

LIMIT = 512 << 20
MEMORY = Path("/sys/fs/cgroup/memory")
FAULT = """
import os, sys
if "up" in sys.argv:
    with open(os.environ["PODFIT_TEST_CGROUP"] + "/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
    import podfit.kubelet.sources.environment as environment

    words = environment.words

    async def without_end(pod, *args, **more):
        taken = []
        while pod.metadata.name == "bomb":
            taken.append(b"x" * (16 << 20))
        return await words(pod, *args, **more)

    environment.words = without_end
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`podfit up` gets little memory, and uses all of it up when it works on a pod named bomb."""
    if not (MEMORY / "memory.limit_in_bytes").exists():
        pytest.skip("no memory cgroup of version 1 here")
    group = MEMORY / f"podfit-test-bomb-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(LIMIT))
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "sitecustomize.py").write_text(FAULT)
    monkeypatch.setenv("PYTHONPATH", str(faults))
    monkeypatch.setenv("PODFIT_TEST_CGROUP", str(group))
    yield group
    group.rmdir()


BOMB = json.dumps(manifest("bomb"))


def command(up: Up) -> tuple[str, ...]:
    return (
        PODFIT,
        "up",
        "--detach",
        "--data",
        str(up.root),
        "--port",
        "0",
        "--node",
        "simulated",
        "--kubeconfig",
        str(up.root / "user.kubeconfig"),
        "--eviction-hard",
        "",
    )


def ended(up: Up, pid: int) -> None:
    process_ended(pid, within=30, told=up.log)


def is_set_aside(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("reason") == "SetAside")


@pytest.mark.usefixtures("small")
def test_the_third_start_runs_and_says_so(cluster_dir: Up) -> None:
    cluster_dir.start(node="simulated")
    cluster_dir.apply(manifest("web"))
    cluster_dir.pod_when("web", lambda pod: pod["status"]["phase"] == "Running", "ran")
    pid = cluster_dir.state()["pid"]
    cluster_dir.kubectl("create", "-f", "-", stdin=BOMB)  # it may be killed before it answers
    ended(cluster_dir, pid)
    second = run(*command(cluster_dir), timeout=60)
    if second.code == 0:  # it was ready before it came to the pod
        ended(cluster_dir, cluster_dir.state()["pid"])
    cluster_dir.start(node="simulated")
    pod = cluster_dir.pod_when("bomb", is_set_aside, "was set aside")
    assert pod["status"]["message"].startswith("The kubelet ended twice while it worked on this pod")
    assert "SetAside" in cluster_dir.ok("get", "pod", "bomb")
    assert "SetAside" in cluster_dir.ok("get", "events")
    cluster_dir.apply(manifest("new"))
    for name in ("web", "new"):
        cluster_dir.pod_when(name, lambda pod: pod["status"]["phase"] == "Running", "ran")
    cluster_dir.ok("delete", "pod", "bomb", "--wait=true")
    assert cluster_dir.down().code == 0
