"""The images of a running cluster's private containerd."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import running
from podfit.process.errors import ClusterError, MachineError, UsageError
from podfit.process.node.cri_runtime import cri_runtime
from podfit.process.node.runtime import private_containerd


class ImageLine(msgspec.Struct, frozen=True):
    name: str
    id: str
    size: int


async def load_archives(data: DataDir, archives: Sequence[Path]) -> list[str]:
    """Names of what was loaded. Raises ClusterError that says which archive is wrong."""
    if not archives:
        raise UsageError("a file is required, such as web.tar")
    for archive in archives:
        if not archive.is_file():
            raise MachineError(f"{archive}: {'not a regular file' if archive.exists() else 'no such file'}")
    runtime = _connect(data)
    try:
        return [name for archive in archives for name in await runtime.import_archive(archive.absolute())]
    except CRIError as error:
        raise ClusterError(str(error)) from error
    finally:
        await runtime.close()


async def list_images(data: DataDir) -> list[ImageLine]:
    runtime = _connect(data)
    try:
        found = await runtime.list_images()
    except CRIError as error:
        raise ClusterError(str(error)) from error
    finally:
        await runtime.close()
    lines = [ImageLine(name, image.id, image.size) for image in found for name in image.tags or image.digests]
    return sorted(lines, key=lambda line: line.name)


def _connect(data: DataDir) -> Runtime:
    state = running(data)
    if state is None:
        raise MachineError(f"no cluster is running on {data.root}", fix=(f"start one:  {data.command('up')}",))
    if state.external_runtime:
        raise MachineError(
            f"the images of the runtime at {state.external_runtime} are not managed by podfit",
            fix=(f"use its own tools:  ctr -a {state.external_runtime} -n k8s.io images import FILE",),
        )
    if not any(node.runtime_endpoint for node in state.nodes):
        raise MachineError("this cluster has no containerd of its own; simulated nodes need no images")
    containerd = private_containerd(data, SystemClock())
    return cri_runtime(containerd.places.socket, containerd.importer)
