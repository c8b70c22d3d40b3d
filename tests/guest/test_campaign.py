"""The long form on cgroup v2: the demo as users start it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.campaign]


@pytest.mark.kubectl
@pytest.mark.timeout(400)
def test_the_demo_is_as_told(tmp_path: Path) -> None:
    podfit = str(Path(sys.executable).with_name("podfit"))
    done = subprocess.run([podfit, "demo", "--data", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cgroup v2, cgroupfs driver" in done.stdout
    assert "all checks passed" in done.stdout + done.stderr
