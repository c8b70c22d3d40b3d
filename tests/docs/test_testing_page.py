"""docs/testing.md: its tests pass as they stand."""

import re
import subprocess
import sys
from pathlib import Path

from support.eventually import PATIENCE

PAGE = Path(__file__).parents[2] / "docs/testing.md"
IMPORTS = """
import asyncio
import queue
import threading

import kopf
import kubernetes
import pytest

from podfit.core.errors import ApiError


"""
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    blocks = PYTHON.findall(PAGE.read_text())
    expected = sum(block.count("def test_") for block in blocks)
    assert expected >= 6
    (tmp_path / "test_page.py").write_text(IMPORTS + "\n\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "test_page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90 * PATIENCE,
        check=False,
    )
    assert f"{expected} passed" in done.stdout, done.stdout + done.stderr
