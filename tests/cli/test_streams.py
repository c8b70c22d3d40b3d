"""Who reads an answer may leave, a disk may be full, and Ctrl-C may come in the middle: each is told in a line."""

import asyncio
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from answers.conversation import Conversation, pod
from cli.test_questions import kubeconfig
from cli.test_top import shop
from podfit.testing.cluster import Cluster
from support.eventually import PATIENCE
from support.terminal import podfit

WAITS = [{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}]
QUESTIONS = [["why"], ["why", "-o", "json"], ["export", "pod/web"], ["plan", "pod/web", "--cpu", "700m", "-o", "yaml"]]
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: "web:1", resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: app, image: "big:1", resources: {requests: {cpu: "2"}}}]}
"""


def waiting() -> Conversation:
    made = Conversation(36, pod(cpu="3", allocated="500m", conditions=WAITS), pod("big", cpu="2"))
    made.documents["/api/v1/namespaces/shop/pods"] = made.documents["/api/v1/pods"]
    return made


async def in_shell(command: list[str], redirected: str, path: str) -> subprocess.CompletedProcess[str]:
    """A podfit command whose stdout goes where `redirected` says."""
    shell = ["bash", "-c", f'"$@" {redirected}', "-", *podfit(*command), "--kubeconfig", path]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(shell, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    return await asyncio.to_thread(run)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
async def test_a_stdout_that_is_closed_changes_no_exit_code(question: list[str], tmp_path: Path) -> None:
    async with kubeconfig(tmp_path, waiting()) as path:
        open_ = await in_shell(question, ">/dev/null", path)
        closed = await in_shell(question, ">&-", path)
    assert (closed.returncode, closed.stderr) == (open_.returncode, open_.stderr)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
async def test_a_disk_that_is_full_is_said(question: list[str], tmp_path: Path) -> None:
    async with kubeconfig(tmp_path, waiting()) as path:
        done = await in_shell(question, ">/dev/full", path)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "error: <stdout>: no space left on device"


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [("| head -1; exit ${PIPESTATUS[0]}", 0, ""), (">/dev/full", 3, "error: <stdout>: no space left on device\n")],
)
def test_a_help_page_whose_reader_leaves_is_no_failure(redirected: str, code: int, said: str) -> None:
    shell = ["bash", "-c", f'"$@" {redirected}', "-", *podfit("plan", "--help")]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (code, said)


async def test_nobody_is_watched_for(tmp_path: Path) -> None:
    """`podfit top --watch | head -1` ends when head has."""
    async with kubeconfig(tmp_path, shop()) as path:
        done = await in_shell(["top", "--watch", "--interval", "0.1"], "| head -1; exit ${PIPESTATUS[0]}", path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_a_resize_waits_says_what_stands(cluster: Cluster) -> None:
    """Whoever looks at a terminal was told before what it waits for; stdout stays clean."""
    cluster.apply(PODS)
    ours, theirs = pty.openpty()
    command = podfit("resize", "pod/web", "--cpu", "3", "--wait", "--kubeconfig", str(cluster.kubeconfig), "-o", "json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"NO_COLOR": "1"}
    ) as process:
        os.close(theirs)
        told = b""
        while b"resize deferred" not in told:
            told += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60 * PATIENCE)
        told = told.partition(b"resize deferred")[2]
        while b"--kubeconfig" not in told:
            told += os.read(ours, 4096)
    os.close(ours)
    assert (process.returncode, out) == (130, b"")
    said = told.decode()
    assert "Traceback" not in said
    plain = " ".join(said.split())
    assert "interrupted: 0 of 1 pod resized" in plain
    assert "web resize deferred: Node didn't have enough resource: cpu" in plain
    assert "it was sent, and the node goes on with it" in plain
    assert "see: podfit why pod/web" in plain
    assert cluster.pod("web").desired.cpu == 3
