"""Wheel and sdist: exactly what git tracks, with the commit in them."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from podfit import __version__
from support.history import ROOT, git, need_commit


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_commit("HEAD")
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run([ROOT / "scripts/package", folder], check=True, capture_output=True, text=True)
    assert done.stdout.count("KiB") == 2, done
    return folder


def wheel(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(folder / f"podfit-{__version__}-py3-none-any.whl")


def test_the_wheel_is_the_package_as_git_tracks_it(built: Path) -> None:
    tracked = set(git("ls-tree", "-r", "--name-only", "HEAD", "src/podfit").split())
    names = {name for name in wheel(built).namelist() if ".dist-info/" not in name}
    assert {f"src/{name}" for name in names} == tracked


def test_the_sdist_is_what_git_tracks(built: Path) -> None:
    with tarfile.open(built / f"podfit-{__version__}.tar.gz") as sdist:
        names = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
    assert names - {"PKG-INFO"} == set(git("ls-tree", "-r", "--name-only", "HEAD").split())


def test_what_is_installed_names_its_commit(built: Path, tmp_path: Path) -> None:
    wheel(built).extractall(tmp_path)
    ask = "from podfit.process.data.release import described; print(described())"
    code = f"import sys; sys.path.insert(0, sys.argv[1]); {ask}"
    command = [sys.executable, "-I", "-c", code, str(tmp_path)]
    told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout.strip()
    assert told == f"podfit {__version__} (commit {git('rev-parse', 'HEAD')[:12]})"
