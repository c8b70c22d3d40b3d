"""A node whose runtime turns out to be of no use: it is not left running, and what runs on it is not taken away."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.runtime.containerd import Places
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.types import Version
from podfit.process import node
from podfit.process.errors import MachineError
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
    monkeypatch.setattr(node, "_cri", lambda *_: runtime)
    with pytest.raises(MachineError, match="no space left on device"):
        await node.real_backend(prepared, None, FakeClock())  # type: ignore[arg-type]
    assert (prepared.containerd.stopped, runtime.closed) == (stopped, True)


async def test_a_runtime_with_the_other_cgroup_driver_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, prepared = Theirs([]), Prepared(tmp_path)
    monkeypatch.setattr(prepared, "containerd", None)  # as where a runtime is named
    monkeypatch.setattr(node, "_cri", lambda *_: runtime)
    options = SimpleNamespace(runtime_endpoint="/run/theirs.sock")
    with pytest.raises(MachineError, match=r"\(cri-o 1.33, cgroup v1\) has the cgroup driver systemd") as refused:
        await node.real_backend(prepared, options, FakeClock())  # type: ignore[arg-type]
    assert "cgroup_manager" in refused.value.fix[0]
    assert runtime.closed
