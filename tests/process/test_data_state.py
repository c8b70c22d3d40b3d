"""A data directory in which a part of a cluster is lost is refused; a first start that was killed goes on."""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.cli import exits
from podfit.cli.app import run
from podfit.process.data import state as data_state
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions
from podfit.process.up import Cluster

DAMAGE = ("missing", "empty", "truncated", "garbage")


def options(root: Path) -> UpOptions:
    return UpOptions(
        api=ApiServerOptions(data=DataDir(root), port=0, kubeconfig=root.with_name("config")), node=NodeKind.NONE
    )


async def start(root: Path) -> Cluster:
    return await Cluster.start(options(root), announce=lambda _: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a cluster that has run and holds an object, stopped as by SIGTERM."""
    root = tmp_path_factory.mktemp("whole") / "data"

    async def make() -> None:
        cluster = await start(root)
        meta = ObjectMeta(name="kept", namespace="default")
        await cluster.admin_local().create(ConfigMap(metadata=meta, data={"a": "b"}))
        await cluster.stop(pods=False)

    asyncio.run(make())
    return root


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "data"))


def spoil(path: Path, damage: str) -> None:
    content = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "garbage":
            path.write_bytes(bytes(255 - byte for byte in content))


def contents(root: Path) -> dict[str, bytes]:
    return {part: (root / part).read_bytes() for part in data_state.PARTS if (root / part).exists()}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("part", data_state.PARTS)
async def test_a_part_that_is_lost_is_named_and_nothing_is_made_in_its_place(
    root: Path, part: str, damage: str
) -> None:
    spoil(root / part, damage)
    before = contents(root)
    with pytest.raises(MachineError) as refused:
        await start(root)
    assert refused.value.exit_code == exits.MACHINE
    assert part in refused.value.message
    assert "damaged cluster" in refused.value.message
    assert "still there: " in refused.value.evidence[0]
    fix = "\n".join(refused.value.fix)
    assert f"podfit restore FILE --replace --data {root}" in fix
    assert f"rm -r {root}" in fix
    assert contents(root) == before


@pytest.mark.parametrize("kept", data_state.PARTS)
async def test_whatever_is_left_alone_is_the_rest_of_a_cluster(root: Path, kept: str) -> None:
    for path in (*(root / part for part in data_state.PARTS if part != kept), root / "store.db-wal"):
        path.unlink(missing_ok=True)
    with pytest.raises(MachineError, match="damaged cluster"):
        await start(root)


@pytest.mark.parametrize("trace", ["admin.kubeconfig", "pki/admin.crt", "kubelet/simulated-1"])
async def test_traces_of_a_cluster_without_any_of_its_parts(root: Path, trace: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / trace).parent.mkdir(parents=True)
    if trace.startswith("kubelet"):
        (other / trace).mkdir()
    else:
        shutil.copy(root / trace, other / trace)
    with pytest.raises(MachineError, match="damaged cluster"):
        await start(other)


async def test_an_emptied_store_does_not_take_its_log_of_writes_with_it(root: Path) -> None:
    (root / "store.db-wal").write_bytes(b"left by a killed server")
    (root / "store.db").write_bytes(b"")
    with pytest.raises(MachineError, match=r"store\.db is empty"):
        await start(root)
    assert (root / "store.db-wal").read_bytes() == b"left by a killed server"


@pytest.mark.parametrize("pages", range(1, 12, 2))
async def test_a_store_that_was_cut_at_a_page(root: Path, pages: int) -> None:
    store = root / "store.db"
    os.truncate(store, pages * 8192)
    with pytest.raises(MachineError, match="damaged cluster"):
        await start(root)


def test_on_the_command_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(root / "pki/ca.key", "empty")
    for verb, *flags in (["up", "--node", "none"], ["apiserver"]):
        assert run([verb, "--data", str(root), "--port", "0", "--kubeconfig", str(root) + ".config", *flags]) == 3
        first, second, *_ = capsys.readouterr().err.splitlines()
        assert first == f"error: {root} holds a damaged cluster: pki/ca.key is empty"
        assert "pki/ca.crt" in second
        assert "admin.kubeconfig" in second


async def test_a_whole_cluster_starts_with_what_it_held(root: Path) -> None:
    cluster = await start(root)
    try:
        assert (await cluster.admin_local().get(ConfigMap, "kept", namespace="default")).data == {"a": "b"}
    finally:
        await cluster.stop(pods=False)
    assert not DataDir(root).setup.exists()


_SNAPSHOTS: list[Path | None] = [None]
_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "sqlite3.connect")


def _hook(event: str, _: object) -> None:
    if event in _EVENTS and (root := _SNAPSHOTS[0]) is not None and root.exists():
        _SNAPSHOTS[0] = None
        _keep(root)
        _SNAPSHOTS[0] = root


def _keep(root: Path) -> None:
    """A copy of the directory, if it is another than the one before."""
    number = len(list(root.parent.glob("killed-*")))
    last = root.parent / f"killed-{number - 1}"
    listing = [(str(path.relative_to(root)), path.stat().st_size) for path in sorted(root.rglob("*"))]
    if number and listing == [(str(path.relative_to(last)), path.stat().st_size) for path in sorted(last.rglob("*"))]:
        return
    shutil.copytree(root, root.parent / f"killed-{number}", ignore=lambda *_: ["store.reserve"])


@contextmanager
def snapshots(root: Path) -> Iterator[None]:
    """What a machine that dies now would leave, at every step that touches a file."""
    sys.addaudithook(_hook)
    _SNAPSHOTS[0] = root
    try:
        yield
    finally:
        _SNAPSHOTS[0] = None


def states(folder: Path) -> list[Path]:
    return sorted(folder.glob("killed-*"), key=lambda path: int(path.name.partition("-")[2]))


async def test_a_first_start_that_is_killed_at_any_step_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with snapshots(root):
        cluster = await start(root)
    await cluster.stop(pods=False)
    killed = states(tmp_path)
    assert len(killed) > 10
    begun = [state for state in killed if DataDir(state).setup.exists()]
    assert any((state / "pki/ca.key").exists() and not (state / "pki/ca.crt").exists() for state in begun)
    assert any((state / "pki/ca.crt").exists() and not (state / "store.db").exists() for state in begun)
    complete = [state for state in killed if state not in begun]
    for state in (*begun, *complete[:1], *complete[-1:]):
        again = await start(state)
        await again.stop(pods=False)
        assert not DataDir(state).setup.exists()
        assert len(contents(state)) == len(data_state.PARTS)
