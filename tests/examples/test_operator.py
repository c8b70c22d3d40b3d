"""The example operator passes its own tests, run as a project of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.eventually import PATIENCE

OPERATOR = Path(__file__).parents[2] / "examples/operator"


@pytest.mark.timeout(180)
def test_the_example_operator_passes_its_own_tests() -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis"]
    done = subprocess.run(
        command, cwd=OPERATOR, env=ours, capture_output=True, text=True, timeout=170 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= 11
    assert "skipped" not in done.stdout
