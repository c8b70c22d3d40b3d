"""The runtime of a real node: cgroups, and a private containerd.

Kept light, because containerd is launched before anything else is done and gets ready while the API server starts.
"""

import hashlib
from pathlib import Path

import msgspec

from podfit.core.clock import Clock
from podfit.kubelet.cgroup.detect import DetectedCgroups, detect
from podfit.kubelet.cgroup.protocol import CgroupError, Layout
from podfit.kubelet.runtime.containerd import Containerd, ContainerdFailed, OtherPlugins, Places, Plugins
from podfit.kubelet.runtime.images import PAUSE
from podfit.net.files import write_atomic
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError
from podfit.process.options import NodeOptions


class PreparedRuntime(msgspec.Struct, frozen=True):
    """`containerd` is None where another runtime was named."""

    cgroups: DetectedCgroups
    containerd: Containerd | None


def prepare_runtime(options: NodeOptions, clock: Clock) -> PreparedRuntime:
    """Look for cgroups, and launch or adopt containerd without waiting for it. Raises MachineError."""
    try:
        found = detect(place_cgroups(options.data, options.kubelet.cgroup_root))
    except CgroupError as error:
        raise MachineError(f"no cgroups on this machine: {error}", fix=(simulate(options.data),)) from error
    if options.runtime_endpoint:
        return PreparedRuntime(found, None)
    containerd = private_containerd(options.data, clock, plugins_of(options))
    try:
        containerd.begin()
    except OtherPlugins as error:
        raise MachineError(
            f"pods of this directory have other plugins: {error}", fix=(options.data.command("down"),)
        ) from error
    except ContainerdFailed as error:
        raise containerd_failed(options.data, containerd, error) from error
    return PreparedRuntime(found, containerd)


def plugins_of(options: NodeOptions) -> Plugins:
    """Who gives pods their addresses."""
    own, kubelet = Places(options.data.containerd).own_plugins, options.kubelet
    if not kubelet.cni_conf_dir:
        return own
    return Plugins(Path(kubelet.cni_conf_dir).absolute(), Path(kubelet.cni_bin_dir or own.programs).absolute())


def containerd_failed(data: DataDir, containerd: Containerd, error: ContainerdFailed) -> MachineError:
    return MachineError(str(error), evidence=(f"its log: {containerd.places.log}",), fix=(simulate(data),))


def simulate(data: DataDir) -> str:
    """What to do on a machine that cannot be a node."""
    return f"or run:  {data.command('up', '--node', 'simulated')}"


def cgroup_layout(data: DataDir) -> Layout:
    """A tree of its own for each data directory, so that two clusters on one machine do not meet."""
    try:
        root = data.cgroup_root.read_text().strip()
    except OSError:
        root = ""
    return _below(root, data)


def place_cgroups(data: DataDir, root: str) -> Layout:
    """From now on the tree is below `root`, a cgroup that is there; empty is the root of all. Raises MachineError,
    CgroupError.
    """
    before, wanted = cgroup_layout(data), _below(root, data)
    if wanted != before and detect(before).cgroups.exists(before.prefix):
        raise MachineError(f"pods of this directory are below the cgroup {before.prefix}", fix=(data.command("down"),))
    if not root:
        data.cgroup_root.unlink(missing_ok=True)
        return wanted
    if not detect(wanted).cgroups.exists(root):
        raise MachineError(f"--cgroup-root {root}: there is no such cgroup", fix=("make it, for every controller",))
    data.create()
    write_atomic(data.cgroup_root, f"{root}\n".encode())
    return wanted


def _below(root: str, data: DataDir) -> Layout:
    tag = hashlib.sha256(str(data.root).encode()).hexdigest()[:10]
    return Layout(f"{root}/podfit-{tag}")


def private_containerd(data: DataDir, clock: Clock, plugins: Plugins | None = None) -> Containerd:
    """Without `plugins` it has those of the one before it."""
    return Containerd(data.containerd, sandbox_image=PAUSE, clock=clock, plugins=plugins)
