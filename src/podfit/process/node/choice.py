"""Chooses the kind of node: the one asked for, else what this machine can run."""

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from podfit.core.clock import Clock
from podfit.decide.machine import FILTER, Check, Facts, commands, lacking, network_checks, node_checks
from podfit.decide.node.options import PodNetworkKind
from podfit.process.errors import MachineError
from podfit.process.options import NodeKind, NodeOptions, UpOptions, makes_network

if TYPE_CHECKING:
    from podfit.process.node.runtime import PreparedRuntime


class NodeChoice(msgspec.Struct, frozen=True):
    """The kind of node and, for people, why it was chosen. `pod_network` is where its pods are, never AUTO, and `lacks`
    what would have to be here for other than that.
    """

    kind: NodeKind
    why: str
    pod_network: PodNetworkKind = PodNetworkKind.HOST
    lacks: tuple[Check, ...] = ()


def looks_at_rules(options: UpOptions) -> bool:
    """Whether it matters what the kernel has for rules of Services."""
    simulated = options.node in (NodeKind.SIMULATED, NodeKind.NONE)
    return not simulated and makes_network(options) and options.kubelet.pod_network is not PodNetworkKind.HOST


def choose_node(options: UpOptions, facts: Facts) -> NodeChoice:
    """A real node when this machine can have one, else a simulated one; MachineError when a real one was demanded."""
    if options.node in (NodeKind.SIMULATED, NodeKind.NONE):
        return NodeChoice(options.node, "as asked", _simulated_network(options))
    lacks = lacking(node_checks(facts, private=not options.runtime_endpoint))
    if not lacks and options.nodes == 1:
        network, missing = choose_network(options, facts)
        return NodeChoice(NodeKind.REAL, "root, Linux and a container runtime are here", network, missing)
    if options.node is NodeKind.REAL or not makes_network(options):
        raise no_real_node("a real node cannot run here", lacks, options.data.command("up", "--node", "simulated"))
    why = lacks[0].found if lacks else f"{options.nodes} nodes were asked for and this machine is one"
    return NodeChoice(NodeKind.SIMULATED, why, _simulated_network(options))


def _simulated_network(options: UpOptions) -> PodNetworkKind:
    return PodNetworkKind.HOST if options.kubelet.pod_network is PodNetworkKind.HOST else PodNetworkKind.POD


def choose_network(options: NodeOptions, facts: Facts) -> tuple[PodNetworkKind, tuple[Check, ...]]:
    """Where pods of a real node are, and what lacks for other than that. Raises MachineError where addresses of their
    own were demanded; only a kernel that lacks rules still gives them, without Services.
    """
    wanted = options.kubelet.pod_network
    if options.kubelet.cni_conf_dir:
        return PodNetworkKind.POD, ()
    if options.runtime_endpoint or wanted is PodNetworkKind.HOST:
        return (PodNetworkKind.HOST if wanted is PodNetworkKind.AUTO else wanted), ()
    lacks = tuple(lacking(network_checks(facts)))
    if wanted is PodNetworkKind.AUTO:
        return (PodNetworkKind.HOST if lacks else PodNetworkKind.POD), lacks
    if any(check.part != FILTER for check in lacks):
        instead = options.data.command("up", "--pod-network", "host")
        raise no_real_node("pods cannot have addresses of their own here", lacks, instead)
    return wanted, lacks


def network_note(choice: NodeChoice) -> str:
    """For people, one line; empty where nothing lacks."""
    if not choice.lacks:
        return ""
    found, mend = "; ".join(check.found for check in choice.lacks), "; ".join(commands(choice.lacks))
    if choice.pod_network is PodNetworkKind.POD:
        return f"{found}: no Service leads to pods, and nothing keeps a pod from sending with another's address"
    how = f" (mend it: {mend})" if mend else ""
    return f"pods are on the host's network, and no Service leads to them: {found}{how}"


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
