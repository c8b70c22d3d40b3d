"""A node whose runtime turns out to be of no use: it is not left running, and what runs on it is not taken away."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import CgroupConfig
from podfit.kubelet.runtime.containerd import Places
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.types import Version
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError
from podfit.process.node import backend as node_backend
from podfit.process.node import runtime as node_runtime
from support.clock import FakeClock


class Runtime:
    """Ready, and without a way to load an image."""

    runtime_ready = True

    def __init__(self, sandboxes: list[str] | None) -> None:
        self.sandboxes, self.closed = sandboxes, False

    async def status(self) -> "Runtime":
        return self

    async def image_status(self, name: str) -> None:
        raise CRIError(f"{name}: no space left on device")

    async def list_sandboxes(self) -> list[str]:
        if self.sandboxes is None:
            raise CRIError("shutting down")
        return self.sandboxes

    async def close(self) -> None:
        self.closed = True


class Containerd:
    importer = None

    def __init__(self, root: Path) -> None:
        self.places, self.stopped = Places(root), False

    async def start(self) -> None: ...

    async def stop(self) -> None:
        self.stopped = True


class Found:
    cgroups, described = MemoryCgroups(), "cgroup v1"


class Theirs(Runtime):
    """Somebody else's, with the other cgroup driver."""

    async def version(self) -> Version:
        return Version(runtime_name="cri-o", runtime_version="1.33", api_version="v1")

    async def cgroup_driver(self) -> str:
        return "systemd"


class Prepared:
    cgroups = Found()

    def __init__(self, root: Path) -> None:
        self.containerd = Containerd(root)


@pytest.mark.parametrize(("sandboxes", "stopped"), [([], True), (["one"], False), (None, False)])
async def test_a_containerd_that_cannot_be_used_is_ended_unless_something_may_run_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandboxes: list[str] | None, stopped: bool
) -> None:
    runtime, prepared = Runtime(sandboxes), Prepared(tmp_path)
    monkeypatch.setattr(node_backend, "cri_runtime", lambda *_: runtime)
    with pytest.raises(MachineError, match="no space left on device"):
        await node_backend.real_backend(prepared, None, FakeClock())  # type: ignore[arg-type]  # a fake
    assert (prepared.containerd.stopped, runtime.closed) == (stopped, True)


async def test_a_runtime_with_the_other_cgroup_driver_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, prepared = Theirs([]), Prepared(tmp_path)
    monkeypatch.setattr(prepared, "containerd", None)  # as where a runtime is named
    monkeypatch.setattr(node_backend, "cri_runtime", lambda *_: runtime)
    options = SimpleNamespace(runtime_endpoint="/run/theirs.sock")
    with pytest.raises(MachineError, match=r"\(cri-o 1.33, cgroup v1\) has the cgroup driver systemd") as refused:
        await node_backend.real_backend(prepared, options, FakeClock())  # type: ignore[arg-type]  # a fake
    assert "cgroup_manager" in refused.value.fix[0]
    assert runtime.closed


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> MemoryCgroups:
    """The machine's cgroups."""
    cgroups = MemoryCgroups()
    monkeypatch.setattr(node_runtime, "detect", lambda layout: SimpleNamespace(cgroups=cgroups))
    return cgroups


def test_pods_are_below_the_cgroup_that_was_named_and_down_knows_it(tree: MemoryCgroups, tmp_path: Path) -> None:
    data = DataDir(tmp_path / "data")
    plain = node_runtime.cgroup_layout(data)
    tree.create("/share", CgroupConfig())
    layout = node_runtime.place_cgroups(data, "/share")
    assert layout.prefix == f"/share{plain.prefix}"
    assert node_runtime.cgroup_layout(data) == layout
    assert node_runtime.place_cgroups(data, "") == node_runtime.cgroup_layout(data) == plain


def test_a_cgroup_root_has_to_be_there_and_stays_while_pods_are_below_it(tree: MemoryCgroups, tmp_path: Path) -> None:
    data = DataDir(tmp_path / "data")
    with pytest.raises(MachineError, match="there is no such cgroup"):
        node_runtime.place_cgroups(data, "/share")
    tree.create("/share", CgroupConfig())
    layout = node_runtime.place_cgroups(data, "/share")
    tree.create(layout.prefix, CgroupConfig())
    with pytest.raises(MachineError, match="pods of this directory are below the cgroup /share/podfit-"):
        node_runtime.place_cgroups(data, "")
    assert node_runtime.cgroup_layout(data) == layout
