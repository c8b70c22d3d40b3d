"""Chooses the kind of node: the one asked for, else what this machine can run."""

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from podfit.core.clock import Clock
from podfit.decide.machine import Check, Facts, commands, lacking, node_checks
from podfit.decide.node.options import PodNetworkKind
from podfit.process.errors import MachineError
from podfit.process.options import NodeKind, UpOptions

if TYPE_CHECKING:
    from podfit.process.node.runtime import PreparedRuntime


class NodeChoice(msgspec.Struct, frozen=True):
    """The kind of node and, for people, why it was chosen."""

    kind: NodeKind
    why: str


def choose_node(options: UpOptions, facts: Facts) -> NodeChoice:
    """A real node when this machine can have one, else a simulated one; MachineError when a real one was demanded."""
    if options.node in (NodeKind.SIMULATED, NodeKind.NONE):
        return NodeChoice(options.node, "as asked")
    routed = options.kubelet.pod_network is PodNetworkKind.POD
    lacks = lacking(node_checks(facts, private=not options.runtime_endpoint, routed=routed))
    if not lacks and options.nodes == 1:
        return NodeChoice(NodeKind.REAL, "root, Linux and a container runtime are here")
    if options.node is NodeKind.REAL or options.runtime_endpoint:
        raise no_real_node("a real node cannot run here", lacks, options.data.command("up", "--node", "simulated"))
    why = lacks[0].found if lacks else f"{options.nodes} nodes were asked for and this machine is one"
    return NodeChoice(NodeKind.SIMULATED, why)


def no_real_node(message: str, lacks: Sequence[Check], instead: str = "") -> MachineError:
    """`instead` is another command to run."""
    fixes = [f"mend it:  {command}" for command in commands(lacks)] + ([f"or run:  {instead}"] if instead else [])
    return MachineError(message, evidence=tuple(check.found for check in lacks), fix=tuple(fixes))


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
    from podfit.process.node.runtime import prepare_runtime

    return prepare_runtime(options, clock)
