"""Facts about this machine, and `podfit doctor` over them."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from podfit.cli import exits
from podfit.cli.app import run
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DataDir
from podfit.process.node.machine import look

NOW = datetime(2100, 1, 1, tzinfo=UTC)


def test_nothing_is_changed_by_looking(tmp_path: Path) -> None:
    facts = look(DataDir(tmp_path / "new" / "cluster"), NOW)
    assert not list(tmp_path.iterdir())
    assert (facts.system, facts.user) == ("Linux", os.geteuid())
    assert facts.disk.error == ""
    assert 0 < facts.disk.free <= facts.disk.size
    assert {"cpu", "memory"} <= set(facts.cgroups.controllers)
    assert {"pid", "mnt", "net"} <= facts.namespaces


def test_programs_that_are_not_on_the_path_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look(DataDir(tmp_path), NOW).programs == {}
    (tmp_path / "runc").write_text("#!/bin/sh\necho runc version 9\necho more\n")
    (tmp_path / "nft").write_text("#!/nowhere\n")
    for name in ("runc", "nft"):
        (tmp_path / name).chmod(0o755)
    found = look(DataDir(tmp_path), NOW).programs
    assert found == {"runc": "runc version 9", "nft": f"{tmp_path}/nft, which does not run"}


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        facts = look(DataDir(tmp_path), NOW, ports={"port": ("127.0.0.1", port)}, versions=False)
        assert facts.ports == {"port": f"127.0.0.1:{port} is in use"}
    assert look(DataDir(tmp_path), NOW, ports={"port": ("127.0.0.1", port)}, versions=False).ports == {"port": ""}


def test_a_file_instead_of_a_directory_is_no_place_for_data(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert look(DataDir(tmp_path / "file"), NOW, versions=False).disk.error == f"{tmp_path}/file is no directory"


def test_a_clock_that_is_behind_the_authority_is_found(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.pki.mkdir()
    (data.pki / "ca.crt").write_text("")
    now = SystemClock().now()
    made = (now + timedelta(hours=1)).timestamp()
    os.utime(data.pki / "ca.crt", (made, made))
    assert look(data, now, versions=False).clock_behind == str(data.pki / "ca.crt")
    assert look(data, now + timedelta(hours=1), versions=False).clock_behind == ""


def test_doctor_ends_with_3_where_something_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["doctor", "--data", str(tmp_path), "--port", "0"]) == exits.MACHINE
    told = capsys.readouterr().out
    assert "a real node: cannot run here" in told
    assert "containerd is not installed" in told
    assert "mend it:  apt-get install --no-install-recommends containerd runc" in told
    assert run(["doctor", "--data", str(tmp_path), "--port", "0", "-o", "json"]) == exits.MACHINE
    report = msgspec.json.decode(capsys.readouterr().out)
    assert {"part": "runc", "state": "lacking", "found": "runc is not installed"}.items() <= next(
        check for check in report["node"] if check["part"] == "runc"
    ).items()
