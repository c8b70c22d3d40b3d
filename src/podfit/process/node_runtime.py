"""What a real node needs of its machine: cgroups, and a containerd of our own.

Kept light, because containerd is launched before anything else is done and gets ready while the API server starts.
"""

import hashlib

import msgspec

from podfit.core.clock import Clock
from podfit.kubelet.cgroup.detect import Found, detect
from podfit.kubelet.cgroup.protocol import CgroupError, Layout
from podfit.kubelet.runtime.containerd import Containerd, ContainerdFailed
from podfit.kubelet.runtime.images import PAUSE
from podfit.process.errors import MachineError
from podfit.process.layout import DataDir
from podfit.process.options import NodeOptions


class PreparedRuntime(msgspec.Struct, frozen=True):
    """`containerd` is None where another runtime was named."""

    cgroups: Found
    containerd: Containerd | None


def prepare_runtime(options: NodeOptions, clock: Clock) -> PreparedRuntime:
    """Look for cgroups, and launch or adopt containerd without waiting for it. Raises MachineError."""
    try:
        found = detect(cgroup_layout(options.data))
    except CgroupError as error:
        raise MachineError(f"no cgroups on this machine: {error}", fix=(simulate(options.data),)) from error
    if options.runtime_endpoint:
        return PreparedRuntime(found, None)
    containerd = private_containerd(options.data, clock)
    try:
        containerd.begin()
    except ContainerdFailed as error:
        raise containerd_failed(options.data, containerd, error) from error
    return PreparedRuntime(found, containerd)


def containerd_failed(data: DataDir, containerd: Containerd, error: ContainerdFailed) -> MachineError:
    return MachineError(str(error), evidence=(f"its log: {containerd.places.log}",), fix=(simulate(data),))


def simulate(data: DataDir) -> str:
    """What to do on a machine that cannot be a node."""
    return f"or run:  {data.command('up', '--node', 'simulated')}"


def cgroup_layout(data: DataDir) -> Layout:
    """A tree of its own for each data directory, so that two clusters on one machine do not meet."""
    tag = hashlib.sha256(str(data.root).encode()).hexdigest()[:10]
    return Layout(f"/podfit-{tag}")


def private_containerd(data: DataDir, clock: Clock) -> Containerd:
    return Containerd(data.containerd, sandbox_image=PAUSE, clock=clock)
