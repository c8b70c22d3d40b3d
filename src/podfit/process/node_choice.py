"""Chooses the kind of node: the one asked for, else what this machine can run."""

import os
import shutil
import socket
from typing import TYPE_CHECKING

import msgspec

from podfit.core.clock import Clock
from podfit.process.errors import MachineError
from podfit.process.options import NodeKind, UpOptions

if TYPE_CHECKING:
    from podfit.process.node_runtime import PreparedRuntime

NEEDED = ("containerd", "runc")


class NodeChoice(msgspec.Struct, frozen=True):
    """The kind of node and, for people, why it was chosen."""

    kind: NodeKind
    why: str


def choose_node(options: UpOptions) -> NodeChoice:
    """A real node when this machine can have one, else a simulated one; MachineError when a real one was demanded."""
    if options.node in (NodeKind.SIMULATED, NodeKind.NONE):
        return NodeChoice(options.node, "as asked")
    lacking = lacking_for_real(private=not options.runtime_endpoint)
    if not lacking and options.nodes == 1:
        return NodeChoice(NodeKind.REAL, "root, Linux and a container runtime are here")
    if options.node is NodeKind.REAL or options.runtime_endpoint:
        raise MachineError(
            "a real node cannot run here",
            evidence=tuple(lacking),
            fix=(*advice(lacking), f"or run:  {options.data.command('up', '--node', 'simulated')}"),
        )
    why = lacking[0] if lacking else f"{options.nodes} nodes were asked for and this machine is one"
    return NodeChoice(NodeKind.SIMULATED, why)


def lacking_for_real(*, private: bool) -> list[str]:
    """What this machine lacks to be a real node; `private` is one with a containerd of its own."""
    if os.uname().sysname != "Linux":
        return [f"this is {os.uname().sysname}, not Linux"]
    missing = []
    if os.geteuid() != 0:
        missing.append(f"not root (uid {os.geteuid()}), so no cgroups")
    if private:
        missing += [f"{program} is not installed" for program in NEEDED if not shutil.which(program)]
    return missing


def advice(lacking: list[str]) -> tuple[str, ...]:
    """Commands that help."""
    commands = []
    if any("not root" in missing for missing in lacking):
        commands.append("run it as root:  sudo podfit up")
    if any("not installed" in missing for missing in lacking):
        commands.append("install it:  apt-get install containerd runc containernetworking-plugins")
    return tuple(commands)


def node_names(choice: NodeChoice, count: int) -> tuple[str, ...]:
    """The host's name for a real node; a simulated one says in its name what it is."""
    if choice.kind is NodeKind.NONE:
        return ()
    if choice.kind is NodeKind.REAL:
        return (socket.gethostname().lower(),)
    return tuple(f"simulated-{number}" for number in range(1, count + 1))


def prepared_runtime(choice: NodeChoice, options: UpOptions, clock: Clock) -> "PreparedRuntime | None":
    """The runtime of a real node, begun."""
    if choice.kind is not NodeKind.REAL:
        return None
    from podfit.process.node_runtime import prepare_runtime

    return prepare_runtime(options, clock)
