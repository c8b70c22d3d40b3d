"""docs/rollouts.md is true: its commands are typed in order, and print what it says."""

import subprocess
from pathlib import Path

import pytest

from support.eventually import PATIENCE
from support.page_examples import Shell, commands, files, wrong

PAGE = (Path(__file__).parents[2] / "docs/rollouts.md").read_text()


@pytest.mark.kubectl
@pytest.mark.timeout(180)
def test_the_page_goes_as_it_says(tmp_path: Path) -> None:
    for name, text in files(PAGE).items():
        (tmp_path / name).write_text(text)
    shell, typed = Shell(tmp_path), commands(PAGE)
    try:
        otherwise = wrong(typed, shell.types(typed))
    finally:
        down = ["podfit", "down", "--data", str(tmp_path / "rollouts")]
        subprocess.run(down, env=shell.environment, capture_output=True, timeout=60 * PATIENCE, check=False)
    assert not otherwise, f"the page says otherwise:\n{otherwise}"
