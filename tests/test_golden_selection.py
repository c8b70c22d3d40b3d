"""What is replayed of a golden folder that has not everything, and that an empty choice is an error."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.eventually import PATIENCE
from support.golden import OWN

TESTS = Path(__file__).parent
ABSENT = "decide/test_golden_resize.py"
THERE = "decide/test_golden_admission.py"


def collected(folder: Path, *files: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PODFIT_GOLDEN_DIR": str(folder), "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, timeout=100 * PATIENCE, check=False
    )
    return done.returncode, done.stdout


def test_what_a_folder_has_not_is_deselected_by_name(tmp_path: Path) -> None:
    (tmp_path / "vpa").mkdir()
    shutil.copy(OWN / "vpa" / "capping.json", tmp_path / "vpa")
    capping, resize = "tests/decide/autoscaling/test_vpa_capping.py", f"tests/{ABSENT}"
    code, told = collected(tmp_path, capping, resize)
    assert code == 0, told
    replayed, _, rest = told.partition("not replayed")
    assert "test_vpa_capping.py::" in replayed
    assert ABSENT not in replayed
    assert f"{resize}::test_resize[" in rest


def test_a_file_of_which_nothing_is_chosen_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "resize").mkdir()
    (tmp_path / "resize" / "resize-policy.json").write_text("[]")
    code, told = collected(tmp_path, f"tests/{THERE}")
    assert code != 0
    assert "Empty parameter set" in told
