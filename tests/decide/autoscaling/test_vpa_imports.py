"""NumPy costs 45 MB and 85 ms: only what estimates loads it."""

import subprocess
import sys

import pytest

from support.eventually import PATIENCE

LIGHT = "import sys, {modules}; sys.exit('numpy' in sys.modules)"


@pytest.mark.parametrize(
    "modules",
    [
        "podfit.cli.app",
        "podfit.cli.questions.plan",
        "podfit.cli.processes.up",
        "podfit.process.up",
        "podfit.answers.why.vpa",
        "podfit.decide.autoscaling.validation",
        "podfit.decide.autoscaling.capping",
        "podfit.decide.autoscaling.recommendation",
    ],
)
def test_numpy_is_not_loaded_by(modules: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT.format(modules=modules)], check=False, timeout=60 * PATIENCE)
    assert done.returncode == 0


def test_numpy_is_loaded_by_what_estimates() -> None:
    code = LIGHT.format(modules="podfit.decide.autoscaling.estimate")
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60 * PATIENCE).returncode == 1
