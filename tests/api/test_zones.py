"""Time zones where the machine has no table of them."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOK = "from zoneinfo import ZoneInfo; print(ZoneInfo('Europe/Berlin').key)"


def test_the_package_brings_its_own_table() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert any(requirement.startswith("tzdata") for requirement in wanted)
    assert "\ntzdata==" in (ROOT / "requirements.lock").read_text()


def test_a_zone_is_known_without_the_machines_table() -> None:
    environment = os.environ | {"PYTHONTZPATH": ""}
    found = subprocess.run([sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "Europe/Berlin"
