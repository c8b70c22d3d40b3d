"""scripts/apart: a machine of one's own for a command, of which nothing is left."""

import os
import subprocess
from pathlib import Path

import pytest

from support.eventually import PATIENCE

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(Path("/sys/fs/cgroup/cgroup.controllers").exists(), reason="it needs a host with cgroup v1"),
]
APART = Path(__file__).parents[1] / "scripts/apart"


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [APART, "sh", "-c", script], check=False, capture_output=True, text=True, timeout=60 * PATIENCE
    )


def test_what_others_have_is_not_there_and_what_it_makes_goes_with_it(tmp_path: Path) -> None:
    name = f"/sys/fs/cgroup/memory/podfit-test-{os.getpid()}"
    makes = f"mkdir {name}; mount -t tmpfs t {tmp_path}; ip netns add a; nft add table ip a; touch /run/a; sleep 600 &"
    told = run(f"set -e; {makes} ls /sys/class/net /run/netns; nft list tables; readlink /proc/[0-9]*/exe")
    assert told.returncode == 0, told.stderr
    *seen, reaper, _command, _beside_it = told.stdout.splitlines()
    assert seen == ["/run/netns:", "a", "", "/sys/class/net:", "eth0", "eth0-end", "lo", "table ip a"]
    assert Path(reaper).name == "bash"
    assert not Path(name).exists()
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert not Path("/run/netns/a").exists()
    assert not Path("/run/a").exists()
    assert not list(Path("/sys/fs/cgroup").glob("*/tests-apart-*/*podfit-test-*"))


def test_the_exit_code_is_the_commands() -> None:
    assert run("exit 3").returncode == 3
