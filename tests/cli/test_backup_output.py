"""Backup and restore for scripts: one document on stdout, and nothing there when they fail."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podfit.cli import exits
from podfit.cli.app import run
from podfit.process.data.backup import KEYS
from podfit.process.data.data_dir import DataDir
from podfit.store.sqlite import sqlite_store

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a cluster that has stopped, with five objects."""
    where = DataDir.at(tmp_path / "data")
    where.pki.mkdir(parents=True)
    for name in KEYS:
        (where.root / name).write_text(f"secret of {name}")

    async def fill() -> None:
        store = sqlite_store(where.store)
        for number in range(5):
            await store.create(f"/{number}", b"x")
        await store.close()

    asyncio.run(fill())
    return where.root


def told(capsys: Captured, *arguments: str | Path) -> tuple[int, Any, str]:
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, (json.loads(captured.out) if captured.out else None), captured.err


@pytest.mark.parametrize("keys", [True, False])
def test_a_backup_and_its_restoring_are_documents(data: Path, tmp_path: Path, keys: bool, capsys: Captured) -> None:
    file, again = tmp_path / "b", tmp_path / "again"
    flags = [] if keys else ["--no-pki"]
    code, made, _ = told(capsys, "backup", file, "--data", data, "-o", "json", *flags)
    assert (code, made["file"], made["objects"]) == (exits.DONE, str(file), 5)
    assert made["keys"] is keys
    code, done, _ = told(capsys, "restore", file, "--data", again, "-o", "json")
    assert code == exits.DONE
    assert done | {"file": str(file)} == made | {"data": str(again), "replaced": None}
    code, replaced, _ = told(capsys, "restore", file, "--data", again, "--replace", "-o", "json")
    assert (code, Path(replaced["replaced"]).is_dir()) == (exits.DONE, True)


def test_yaml_says_the_same(data: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run(["backup", str(tmp_path / "b"), "--data", str(data), "-o", "yaml"]) == exits.DONE
    assert yaml.safe_load(capsys.readouterr().out)["objects"] == 5


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["backup", "{there}", "--data", "{data}"], exits.USAGE, "exists already (--overwrite replaces it)"),
        (["backup", "{new}", "--data", "{nothing}"], exits.MACHINE, "there is no store in"),
        (["backup", "{nothing}/b", "--data", "{data}"], exits.USAGE, "there is no directory"),
        (["restore", "{nothing}", "--data", "{new}"], exits.MACHINE, "nothing: No such file or directory"),
        (["restore", "{there}", "--data", "{new}"], exits.MACHINE, "is not a whole backup"),
    ],
)
def test_what_fails_says_so_beside_an_empty_stdout(
    data: Path, tmp_path: Path, arguments: list[str], code: int, why: str, capsys: Captured
) -> None:
    (tmp_path / "there").write_text("no backup")
    places = {name: str(tmp_path / name) for name in ("there", "new", "nothing")} | {"data": str(data)}
    found, document, said = told(capsys, *(argument.format(**places) for argument in arguments), "-o", "json")
    assert (found, document) == (code, None), said
    assert why in said
    assert "Errno" not in said
