"""Stopping what runs on a data directory, whoever started it and however it ended.

A living `podfit up` is asked to stop everything, as Ctrl-C would. What a killed one left behind, containerd and
containers, is found by the data directory and taken down here. Either way the machine is looked at afterwards.
"""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import Sandbox
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import CgroupError
from podfit.kubelet.cgroup.removal import remove_cgroup
from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.kubelet.network.leftovers import NetworkTraces
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.runtime.protocol import Runtime
from podfit.net.system import SystemClock
from podfit.process.access import take_back
from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import (
    Process,
    RunningNode,
    Unrecorded,
    UpState,
    exclusive,
    read_state,
    running,
)
from podfit.process.errors import MachineError
from podfit.process.node.cri_runtime import cri_runtime
from podfit.process.node.leftovers import Traces
from podfit.process.node.pod_network import network_traces, remove_network
from podfit.process.node.runtime import cgroup_layout, private_containerd
from podfit.process.options import NodeKind

log = logging.getLogger(__name__)

STOP_SECONDS = 60.0
ANSWER_SECONDS = 20.0
REMOVAL_SECONDS = 20.0
STEP = 0.05


async def stop_everything(data: DataDir, *, announce: Callable[[str], None]) -> None:
    """Raises MachineError when a running cluster does not end, LeftBehind when something of it stays all the same."""
    clock, traces = SystemClock(), Traces(data)
    process, nodes = _running_process(data)
    present = traces.look()
    if process is not None:
        await _ask_to_stop(process, clock, max((node.shutdown_seconds for node in nodes), default=0))
        if os.geteuid() == 0 and traces.look().network:  # of an earlier podfit that does not know of it
            with exclusive(data):
                await remove_network(data)
        await traces.verify(clock)
        announce(f"stopped podfit (pid {process.pid}){_with(nodes)}")
        return
    left = read_state(data)
    if left is None and not present:
        announce(f"nothing runs on {data.root}")
        return
    with exclusive(data):
        await _take_down(data, left, traces, clock)
        if left is not None and left.kubeconfig and not left.joined:
            take_back(Path(left.kubeconfig), data)
        data.state.unlink(missing_ok=True)
    await traces.verify(clock)
    who = f"an earlier podfit (pid {left.pid})" if left is not None else "an earlier podfit"
    announce(f"took down what {who} had left on {data.root}")


def _running_process(data: DataDir) -> tuple[Process | None, tuple[RunningNode, ...]]:
    """The process of the cluster that runs on the directory, also when its state file is lost; what is known of its
    nodes."""
    try:
        state = running(data)
    except Unrecorded as cluster:
        return cluster.process, ()
    return (Process(state.pid, state.start_ticks), state.nodes) if state is not None else (None, ())


def _with(nodes: tuple[RunningNode, ...]) -> str:
    """What else has stopped: simulated nodes have no containers, and a runtime that was given goes on."""
    if any(node.containerd_pid for node in nodes):
        return ", its containers and its containerd"
    if any(node.kind == NodeKind.REAL for node in nodes):
        return " and its containers"
    if nodes:
        return f" and its simulated {'node' if len(nodes) == 1 else 'nodes'}"
    return ""


async def _ask_to_stop(process: Process, clock: Clock, grace: int) -> None:
    """`grace` is how many seconds its pods have to end. Raises MachineError."""
    try:
        os.kill(process.pid, signal.SIGINT)
    except PermissionError as error:
        raise MachineError(f"podfit (pid {process.pid}) belongs to another user: you may not stop it") from error
    patience = STOP_SECONDS + grace
    deadline = clock.monotonic() + patience
    while process.alive():
        if clock.monotonic() > deadline:
            raise MachineError(
                f"podfit (pid {process.pid}) has not stopped after {patience:.0f} s", fix=("see its log",)
            )
        await asyncio.sleep(STEP)


async def _take_down(data: DataDir, left: UpState | None, traces: Traces, clock: Clock) -> None:
    if left is not None and left.external_runtime:
        await _remove_sandboxes(Path(left.external_runtime))
    elif os.geteuid() == 0 and data.containerd.exists() and shutil.which("containerd"):
        containerd = private_containerd(data, clock)
        await containerd.start()
        await _remove_sandboxes(containerd.places.socket, network_traces(data), containerd)
        await containerd.stop()
        traces.end_processes()
    else:
        return
    layout = cgroup_layout(data)
    for tree in layout.trees:
        try:
            await remove_cgroup(detect(layout).cgroups, tree, clock.sleep)
        except CgroupError as error:
            log.warning("cannot remove cgroups path=%s error=%s", tree, error)
    TmpfsMounter().unmount_below(data.root / "kubelet")
    await remove_network(data)


async def _remove_sandboxes(
    socket: Path, traces: NetworkTraces | None = None, containerd: Containerd | None = None
) -> None:
    """All of them: a CRI runtime belongs to one kubelet. `traces` are those of a network of our own, whose plugins may
    have been killed while they answered; nobody makes a pod now. A containerd of our own that has just started, or is
    ending, is waited for.
    """
    runtime = cri_runtime(socket)
    try:
        if containerd is None:
            sandboxes = await runtime.list_sandboxes()
        else:
            sandboxes = await first_answer(runtime, containerd, SystemClock())
        if traces is not None:
            await asyncio.to_thread(
                traces.mend, {sandbox.id for sandbox in sandboxes}, SystemClock().now().timestamp(), 0.0
            )
        await remove_sandboxes(runtime, sandboxes, SystemClock())
    except CRIError as error:
        what = "does not answer" if isinstance(error, Unavailable) else "refuses"
        raise MachineError(f"the container runtime at {socket} {what}: {error}") from error
    finally:
        await runtime.close()


async def remove_sandboxes(runtime: Runtime, sandboxes: Iterable[Sandbox], clock: Clock) -> None:
    """Stop and remove them. What is refused is tried again for a while: a container that a killed kubelet was starting
    cannot be removed before it has started. Raises CRIError."""
    deadline = clock.monotonic() + REMOVAL_SECONDS
    for sandbox in sandboxes:
        while True:
            try:
                await runtime.stop_sandbox(sandbox.id)
                await runtime.remove_sandbox(sandbox.id)
                break
            except CRIError as error:
                if isinstance(error, Unavailable) or clock.monotonic() >= deadline:
                    raise
                log.debug("sandbox not removed yet id=%s error=%s", sandbox.id, error)
            await clock.sleep(STEP)


async def first_answer(runtime: Runtime, containerd: Containerd, clock: Clock) -> tuple[Sandbox, ...]:
    """The sandboxes of a containerd that has just started: its socket takes connections a moment before it answers.
    One that has ended instead is started again. Raises CRIError."""
    deadline = clock.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return await runtime.list_sandboxes()
        except Unavailable:
            if clock.monotonic() >= deadline:
                raise
        await clock.sleep(STEP)
        await containerd.revive()
