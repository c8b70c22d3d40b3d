"""The backend of a kubelet: runtime and cgroups of a node, real or simulated."""

import asyncio
import logging
from pathlib import Path

import msgspec

from podfit.core.clock import Clock
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import Cgroups
from podfit.kubelet.probes.checks import Checks
from podfit.kubelet.probes.simulated import SimulatedChecks
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.container_network import ContainerReach
from podfit.kubelet.runtime.containerd import Containerd, ContainerdFailed
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.kubelet.runtime.simulated.addresses import RANGE, SimulatedAddresses
from podfit.net.processes import MissingProgram
from podfit.process.errors import MachineError
from podfit.process.node.cri_runtime import cri_runtime, node_network
from podfit.process.node.runtime import PreparedRuntime, containerd_failed
from podfit.process.options import NodeOptions

log = logging.getLogger(__name__)

READY_SECONDS = 30.0
STEP = 0.01


class NodeBackend(msgspec.Struct, frozen=True):
    """What a kubelet drives. `containerd` is set where it is our own child; `images` is where another keeps images."""

    runtime: Runtime
    cgroups: Cgroups
    detail: str
    reach: ContainerReach
    containerd: Containerd | None = None
    images: Path | None = None
    checks: Checks | None = None
    """Other probes than those over `reach`."""
    passing_seconds: float = 0.0
    """A state of a pod's start that lasts less is not told."""


async def real_backend(prepared: PreparedRuntime, options: NodeOptions, clock: Clock) -> NodeBackend:
    """Wait for our own containerd, or connect to the runtime that was named. Raises MachineError."""
    found, containerd = prepared.cgroups, prepared.containerd
    if containerd is None:
        runtime = cri_runtime(Path(options.runtime_endpoint))
        try:
            detail = await _described(runtime, found.described)
            await _check_cgroup_driver(runtime, detail)
        except MachineError:
            await runtime.close()
            raise
        return NodeBackend(runtime, found.cgroups, detail, node_network(), images=await _image_root(runtime))
    try:
        await containerd.start()
    except ContainerdFailed as error:
        raise containerd_failed(options.data, containerd, error) from error
    runtime = cri_runtime(containerd.places.socket, containerd.importer)
    try:
        await _until_ready(runtime, containerd, clock)
        await _load_built_in(runtime, containerd.places.root / "images")
        detail = await _described(runtime, found.described)
        return NodeBackend(runtime, found.cgroups, detail, node_network(), containerd)
    except MachineError:
        await _give_up(NodeBackend(runtime, found.cgroups, "", node_network(), containerd))
        raise


async def _image_root(runtime: Runtime) -> Path | None:
    try:
        found = await runtime.image_root()
    except CRIError as error:
        log.warning("the runtime does not say where its images are; taken for the node's disk error=%s", error)
        return None
    return Path(found) if found else None


async def _give_up(backend: NodeBackend) -> None:
    """What cannot be used is not left running, unless it does not say whether containers are on it."""
    try:
        await release(backend, end=True)
    except CRIError as error:
        log.warning("containerd is left as it is error=%s", error)


async def _described(runtime: Runtime, cgroups: str) -> str:
    try:
        version = await runtime.version()
    except CRIError as error:
        raise MachineError(f"the container runtime does not answer: {error}") from error
    return f"{version.runtime_name} {version.runtime_version}, {cgroups}"


async def _check_cgroup_driver(runtime: Runtime, detail: str) -> None:
    """The cgroups that the kubelet makes for pods are named as the driver cgroupfs names them. containerd before 2.0
    does not tell its driver; with the other one it refuses each pod.
    """
    try:
        driver = await runtime.cgroup_driver()
    except CRIError as error:
        raise MachineError(f"the container runtime does not tell its cgroup driver: {error}") from error
    if driver == "systemd":
        raise MachineError(
            f"the container runtime ({detail}) has the cgroup driver systemd, podfit works with cgroupfs only",
            fix=('containerd: SystemdCgroup = false; CRI-O: cgroup_manager = "cgroupfs"',),
        )


async def _until_ready(runtime: Runtime, containerd: Containerd, clock: Clock) -> None:
    """containerd takes connections before it has its containers together again; until then it refuses every call."""
    deadline = clock.monotonic() + READY_SECONDS
    while True:
        try:
            if (await runtime.status()).runtime_ready:
                return
        except CRIError as error:
            if clock.monotonic() > deadline:
                raise MachineError(f"containerd is not ready after {READY_SECONDS:.0f} s: {error}") from error
        await containerd.revive()
        await clock.sleep(STEP)


async def _load_built_in(runtime: Runtime, directory: Path) -> None:
    """The pause image and busybox, unless this containerd has them from an earlier start."""
    for name, recipe in images.BUILT_IN.items():
        try:
            if await runtime.image_status(name) is None:
                archive = await asyncio.to_thread(images.archive, recipe(), directory)
                await runtime.import_archive(archive)
        except MissingProgram as error:
            raise MachineError(str(error), fix=("install it:  apt-get install busybox-static",)) from error
        except CRIError as error:
            raise MachineError(f"cannot load a built-in image: {error}") from error


async def release(backend: NodeBackend, *, end: bool) -> None:
    """Let go of the runtime. With `end` our own containerd is stopped, unless something still runs on it: its files
    hold the containers' file systems, so it has to be the last to go."""
    try:
        if end and backend.containerd is not None and not await backend.runtime.list_sandboxes():
            await backend.containerd.stop()
    finally:
        await backend.runtime.close()


def simulated_backend(
    clock: Clock, *, programs_end: bool, passing_seconds: float = 0.0, addresses: SimulatedAddresses | None = None
) -> NodeBackend:
    """A backend that simulates. With `programs_end` init containers and Jobs end well, as no program says otherwise.
    Without `addresses` pods have that of the node."""
    cgroups = MemoryCgroups()
    runtime = SimulatedRuntime(clock, cgroups, programs_end=programs_end, addresses=addresses)
    checks = SimulatedChecks.of(runtime)
    detail = "containers do not run" + ("; init containers and Jobs end after a second" if programs_end else "")
    if addresses is not None:
        detail += f"; nothing leads to their pods' addresses ({RANGE})"
    return NodeBackend(runtime, cgroups, detail, checks.reach, checks=checks, passing_seconds=passing_seconds)
