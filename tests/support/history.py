"""The repository's own history, for tests that build packages or run an earlier podfit."""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout


def need_commit(commit: str) -> None:
    """Skips where the history is not here, as in an unpacked sdist or a shallow clone; fails in CI."""
    command = ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"]
    if (ROOT / ".git").exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return
    reason = f"{commit} is not in a git history here"
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has to run this test: {reason}", pytrace=False)
    pytest.skip(reason)


def unpacked(commit: str, folder: Path, *paths: str) -> Path:
    """The files of a commit, below `folder`."""
    need_commit(commit)
    command = ["git", "-C", str(ROOT), "archive", commit, *paths]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def program(commit: str, folder: Path) -> str:
    """A `podfit` of that commit, with the libraries of this one."""
    unpacked(commit, folder, "src")
    script = folder / "podfit"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/src exec {sys.executable} -m podfit.cli "$@"\n')
    script.chmod(0o755)
    return str(script)
