"""A storm of resizes, in the middle of which a part of the system is killed or stands still.

Afterwards every pod has the size it was asked for, in its spec, its status and the kernel; no container restarted, and
no write that was acknowledged is gone. API server, scheduler and kubelet are one process, `podfit up`: there is no form
in which the API server could be killed alone.
"""

import os
import signal
import time
from collections.abc import Callable
from functools import partial

import pytest

from e2e.storm import Storm
from support.parts import containerd_pid
from support.up import Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]

Figure = Callable[[str, object], None]
CRASH_ROWS = pytest.mark.row("R-170", "R-171", "R-172", "R-174")


@CRASH_ROWS
@pytest.mark.timeout(300)
def test_resizes_survive_sigkill(cluster_dir: Up) -> None:
    """`podfit up`, its containerd, both, and a containerd that stands still: once each."""
    storm = Storm(cluster_dir, seed=36)
    cluster_dir.start()
    storm.begin()
    for parts in (["podfit"], ["podfit", "containerd"]):
        storm.disturb(partial(storm.kill, *parts))
        cluster_dir.start()
        storm.check(f"after the end of {parts}")
    storm.disturb(lambda: storm.kill("containerd"))
    storm.check("after the end of containerd")
    storm.disturb(lambda: _stand_still(cluster_dir, 2))
    storm.check("after containerd stood still")


@CRASH_ROWS
@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_podfit_is_killed_again_and_again(cluster_dir: Up, figure: Figure) -> None:
    """24 times: 10 pods, 80 resizes sent at once, SIGKILL of `podfit up` at a random moment, of its containerd too in
    every second round; started again. Every pod reaches its size in spec, status and kernel, without a restart, and no
    acknowledged resize is lost.
    """
    storm = Storm(cluster_dir, seed=1287)
    cluster_dir.start()
    storm.begin()
    for number in range(24):
        parts = ["podfit", "containerd"] if number % 2 else ["podfit"]
        storm.disturb(partial(storm.kill, *parts))
        cluster_dir.start()
        storm.check(f"after kill {number}", seconds=90)
    storm.tell(figure)


@CRASH_ROWS
@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_containerd_is_killed_again_and_again(cluster_dir: Up, figure: Figure) -> None:
    """25 times: SIGKILL of containerd alone in the middle of 80 resizes; `podfit up` starts it again, the containers
    run on, all resizes complete.
    """
    storm = Storm(cluster_dir, seed=1287)
    cluster_dir.start()
    storm.begin()
    for number in range(25):
        storm.disturb(lambda: storm.kill("containerd"))
        storm.check(f"after kill {number} of containerd", seconds=90)
    storm.tell(figure)


@CRASH_ROWS
@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_containerd_stands_still(cluster_dir: Up, figure: Figure) -> None:
    """containerd is stopped (SIGSTOP) in the middle of 80 resizes for 1 to 45 s and goes on: calls hang, some beyond
    their deadline, and are answered late. All resizes complete with the newest values in the kernel.
    """
    storm = Storm(cluster_dir, seed=7)
    cluster_dir.start()
    storm.begin()
    for seconds in (1, 5, 12, 45):
        storm.disturb(partial(_stand_still, cluster_dir, seconds))
        storm.check(f"after containerd stood still for {seconds} s", seconds=90)
    storm.tell(figure)


def _stand_still(up: Up, seconds: float) -> None:
    pid = containerd_pid(up.root)
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
