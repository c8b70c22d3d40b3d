"""Directories and files that a user may not use: one line that is true, exit 3, and nothing half made."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podfit.cli import exits
from podfit.cli.app import run
from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import exclusive
from support.up import PODFIT, Up

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, and mount")
NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to which everybody finds the way."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder != Path("/") and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    return tmp_path


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "mount"
    folder.mkdir()
    TmpfsMounter().tmpfs(folder, size=1 << 20)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    try:
        yield folder
    finally:
        TmpfsMounter().unmount_below(folder)


AS_NOBODY = """
import os, sys
from podfit.cli.app import run
import podfit.cli.error_messages, podfit.process.teardown, podfit.process.inspect, tempfile
words = sys.argv[1:]
run([*words, "--data", "/proc/nope"])  # loads what may be in a place that only root finds the way to
print("as nobody", file=sys.stderr, flush=True)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(run(words))
"""


def as_nobody(*words: str, **environment: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
        cwd="/",
    )
    return done.returncode, done.stderr.partition("as nobody\n")[2].splitlines()


@pytest.mark.parametrize("flags", [(), ("--detach",)])
@pytest.mark.parametrize("below", ["", "new", "new/deeper"])
def test_a_read_only_data_directory(
    read_only: Path, below: str, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["up", "--node", "none", "--port", "0", "--kubeconfig", str(tmp_path / "config"), *flags]
    assert run([*command, "--data", str(read_only / below)]) == exits.MACHINE
    first, *more = capsys.readouterr().err.splitlines()
    assert first == (
        f"error: --data: {read_only / below if below else read_only} cannot be written "
        f"({read_only} is on a read-only file system)"
    )
    assert [line.strip() for line in more] == ["choose another directory with --data"]


@pytest.mark.parametrize("verb", [("up", "--node", "none"), ("up", "--node", "none", "--detach"), ("apiserver",)])
def test_a_directory_that_nobody_can_make(
    verb: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kubeconfig = str(tmp_path / "config")
    command = [*verb, "--port", "0", "--kubeconfig", kubeconfig, "--data", "/proc/nope"]
    assert run(command) == exits.MACHINE
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "error: --data: /proc/nope cannot be written (no such file or directory)"


def test_the_users_kubeconfig_in_a_directory_of_somebody_else(place: Path) -> None:
    (place / "etc").mkdir(mode=0o755)
    (place / "etc/k3s.yaml").write_text("")
    data = place / "data"
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    command = ("up", "--node", "none", "--port", "0", "--data", str(data), "--detach")
    code, said = as_nobody(*command, KUBECONFIG=str(place / "etc/k3s.yaml"))
    assert code == exits.MACHINE
    assert said[0].startswith(f"error: the context podfit cannot be added to {place}/etc/k3s.yaml: ")
    assert "--kubeconfig FILE" in said[1]
    assert len(said) == 2
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    "words", [("status",), ("down",), ("up", "--node", "none", "--port", "0", "--kubeconfig", "/tmp/nobody")]
)
def test_a_cluster_of_another_user(place: Path, words: tuple[str, ...]) -> None:
    data = DataDir.at(place / "data")
    with exclusive(data):
        code, said = as_nobody(*words, "--data", str(data.root))
    assert code == exits.MACHINE
    assert "permission" in said[0]
    assert str(data.root) in said[0]
    assert not any("rm " in line or "Traceback" in line for line in said)


def test_a_state_file_of_another_user_in_a_directory_one_may_read(place: Path) -> None:
    data = DataDir.at(place / "data")
    with exclusive(data):
        data.root.chmod(0o755)
        data.lock.chmod(0o644)
        data.state.write_text("{}")
        data.state.chmod(0o600)
        code, said = as_nobody("status", "--data", str(data.root))
    assert code == exits.MACHINE
    assert said[0] == f"error: {data.root} cannot be used: {data.state}: permission denied"
    assert "rm " not in "".join(said)


@pytest.mark.parametrize("lost", ["missing", "damaged", "of another"])
def test_a_running_cluster_whose_state_file_is_lost_is_known_by_its_lock(tmp_path: Path, lost: str) -> None:
    up = Up(tmp_path / "data")
    up.start(node="none")
    try:
        pid, state = up.state()["pid"], up.root / "up.json"
        text = state.read_text()
        state.unlink()
        if lost == "damaged":
            state.write_text("{")
        elif lost == "of another":
            state.write_text(text.replace(str(pid), "1"))
        command = [PODFIT, "status", "--data", str(up.root)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        assert told.returncode == exits.MACHINE
        assert f"a cluster runs on {up.root} (podfit, pid {pid})" in told.stderr
        assert "rm " not in told.stderr
        again = subprocess.run(
            [PODFIT, "up", "--data", str(up.root), "--node", "none", "--kubeconfig", str(tmp_path / "config")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert again.returncode == exits.MACHINE
        assert f"(pid {pid})" in again.stderr
    finally:
        done = up.down()
    assert (done.code, done.out) == (0, f"stopped podfit (pid {pid})\n")


LONG = "x" * 300
FILES = {
    "--audit-log-path": ("up", "apiserver"),
    "--audit-policy-file": ("up", "apiserver"),
    "--encryption-provider-config": ("up", "apiserver"),
    "--pod-manifest-path": ("up",),
    "--client-ca-file": ("apiserver",),
    "--service-account-signing-key-file": ("apiserver",),
    "--kubeconfig": ("up", "apiserver"),
    "--data": ("up", "apiserver", "status", "down"),
}


PATHS = ("/proc/nope/x", f"/tmp/{LONG}", "LOOP/x", "FILE/x")


@pytest.mark.parametrize(
    ("verb", "flag", "path"),
    [
        (verb, flag, path)
        for flag, verbs in FILES.items()
        for verb in verbs
        for path in PATHS
        if flag != "--pod-manifest-path" or path.endswith(LONG)  # a folder of manifests may be made after the start
    ],
)
def test_no_path_is_answered_with_a_traceback(
    verb: str, flag: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "FILE").write_text("")
    (tmp_path / "LOOP").symlink_to(tmp_path / "LOOP")
    path = str(tmp_path / path)
    values = {"--data": str(tmp_path / "data")}
    if verb in ("up", "apiserver"):
        values |= {"--port": "0", "--kubeconfig": str(tmp_path / "config")}
    if flag == "--audit-policy-file":
        values["--audit-log-path"] = str(tmp_path / "audit.log")
    words = [word for pair in (values | {flag: path}).items() for word in pair]
    code = run([verb, *words, *(("--node", "none") if verb == "up" else ())])
    said = capsys.readouterr().err.splitlines()
    if verb in ("status", "down") and not path.endswith((LONG, "LOOP/x")):
        assert (code, said) == (exits.REFUSED if verb == "status" else exits.DONE, [])
        return
    assert code in (exits.USAGE, exits.MACHINE), said
    assert said[0].startswith("error: ")
    assert path in said[0] or f"{Path(path).parent} is not a directory" in said[0]
    assert len(said) <= 3


@pytest.mark.parametrize(
    "words",
    [
        ("backup", "/proc/nope/x"),
        ("restore", "/nope"),
        ("restore", "/proc"),
        ("image", "load", "/nope"),
        ("image", "load", "/proc"),
        ("backup", f"/tmp/{LONG}"),
        ("restore", f"/tmp/{LONG}"),
        ("image", "load", f"/tmp/{LONG}"),
        ("top", "--kubeconfig", f"/tmp/{LONG}"),
        ("top", "--kubeconfig", "/proc/nope"),
    ],
)
def test_files_that_are_arguments(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = () if words[0] == "top" else ("--data", str(tmp_path / "data"))
    assert run([*words, *data]) in (exits.REFUSED, exits.USAGE, exits.MACHINE)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("error: ")
    assert len(said) <= 3
