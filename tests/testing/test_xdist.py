"""The plugin under pytest-xdist: clusters of several processes live side by side and know nothing of one another."""

import os
import re
import subprocess
import sys
from pathlib import Path

from support.eventually import PATIENCE

SUITE = '''
import os
from contextlib import suppress
from pathlib import Path

import pytest

from podfit.core.errors import ApiError

MEETING, WORKERS = Path(__file__).with_name("meeting"), ("gw0", "gw1")


def meet(place, me):
    """Returns when the other is at the same place: neither end of a pipe opens without the other."""
    pipe = MEETING / place
    with suppress(FileExistsError):
        os.mkfifo(pipe)
    with open(pipe, "w" if me == WORKERS[0] else "r"):
        pass


HALVES = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in "ab"]  # one for each worker


@pytest.mark.parametrize("half", HALVES)
def test_both_at_once(half, cluster, clock, worker_id):
    assert cluster.pods() == []
    own = f"of-{worker_id}"
    MEETING.joinpath(f"url-{worker_id}").write_text(f"{cluster.url} {cluster.kubeconfig}")
    for name in ("same", own):
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [
            {"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}})
    meet("applied", worker_id)
    assert sorted(pod.name for pod in cluster.pods()) == sorted(["same", own])
    if worker_id == "gw0":
        cluster.resize("same", app={"requests": {"cpu": "700m"}})
        clock.advance(minutes=10)
    meet("changed", worker_id)
    assert cluster.pod("same").actual.cpu == (0.7 if worker_id == "gw0" else 0.1)
    assert (clock.elapsed >= 600) == (worker_id == "gw0"), "each has a time of its own"
    told = [MEETING.joinpath(f"url-{worker}").read_text().split() for worker in WORKERS]
    assert len({url for url, _ in told}) == len({path for _, path in told}) == 2
    meet("done", worker_id)  # both clusters are there until both have looked


@pytest.mark.parametrize("number", range(2))
def test_whoever_comes_next_finds_nothing(cluster, number):
    assert cluster.pods() == []
    with pytest.raises(ApiError):
        cluster.pod("same")
'''


def test_two_processes_have_clusters_of_their_own(tmp_path: Path) -> None:
    tmp_path.joinpath("meeting").mkdir()
    tmp_path.joinpath("test_suite.py").write_text(SUITE)
    plugins = ["-p", "xdist", "-p", "podfit.testing.plugin", "-p", "no:cacheprovider"]  # those of the user, not ours
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", *plugins, str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=110 * PATIENCE,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"4 passed", done.stdout)
    assert tmp_path.joinpath("meeting", "done").exists()
