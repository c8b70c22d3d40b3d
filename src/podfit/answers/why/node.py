"""Explains a node: which pods hold its allocation, what waits there, and why the scheduler sees it
fuller than it is.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from podfit.answers.facts.pod_state import SETTLED
from podfit.answers.facts.scheduling import SchedulingState, kept_off
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.node.live_node import NodePod, live_node
from podfit.answers.node.node_allocation import (
    Holder,
    PodShare,
    allocated_to,
    counted_for,
    held_by,
    holders_of,
    seen_fuller,
    texts_of,
)
from podfit.answers.why.pods import PodWhy, notes_of, why_pod
from podfit.api.core.v1.nodes.types import Node
from podfit.decide.node.simulated import FAKE, FAKE_ANNOTATION, is_played


class KeptOff(msgspec.Struct, frozen=True):
    """A pod that the scheduler does not put on the node, and its reason."""

    pod: str
    because: str


class NodeWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Amounts by resource: what can be given, what is promised, what the scheduler counts.

    `holders` and `memory_holders` have most first, `members` are all pods. `waiting` are resizes that are not done, in
    the order in which they are tried; `nominated` are pods that the scheduler keeps room for here, `shut_out` those
    that it keeps away for what only waits, `kept_off` those that it keeps away for another reason.
    """

    node: str
    allocatable: dict[str, str]
    promised: dict[str, str]
    counted: dict[str, str]
    holders: tuple[Holder, ...] = ()
    memory_holders: tuple[Holder, ...] = ()
    members: tuple[PodShare, ...] = ()
    waiting: tuple[PodWhy, ...] = ()
    nominated: tuple[str, ...] = ()
    shut_out: tuple[str, ...] = ()
    kept_off: tuple[KeptOff, ...] = ()
    notes: tuple[str, ...] = ()


def why_node(name: str, snapshot: Snapshot, now: datetime) -> NodeWhy:
    """Who holds it, what waits on it, and why the scheduler sees it fuller than it is. KeyError: it was not read."""
    model = live_node(name, snapshot)
    members, gates = list(model.members.values()), snapshot.age.gates
    queue = [member.desired for member in model.queue()]
    others = [member.desired for member in members if not any(member.desired is one for one in queue)]
    about = [why_pod(pod, snapshot, now) for pod in (*queue, *others)]
    shut, off = _kept_away(name, snapshot, members)
    nominated = [pod for pod in snapshot.unscheduled if pod.status.nominated_node_name == name]
    return NodeWhy(
        node=name,
        allocatable=texts_of(model.view.allocatable),
        promised=texts_of(allocated_to(members)),
        counted=texts_of(counted_for(members, gates)),
        holders=tuple(holders_of("cpu", members)),
        memory_holders=tuple(holders_of("memory", members)),
        members=tuple(held_by(member, gates) for member in members),
        waiting=tuple(pod for pod in about if pod.state != SETTLED),
        nominated=tuple(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in nominated),
        shut_out=shut,
        kept_off=off,
        notes=(*notes_of(snapshot), *_played(model.view.node), *seen_fuller(members, gates)),
    )


def _played(node: Node | None) -> tuple[str, ...]:
    return (
        (f"played by podfit ({FAKE_ANNOTATION}: {FAKE}): its containers do not run",)
        if node and is_played(node)
        else ()
    )


def _kept_away(
    name: str, snapshot: Snapshot, members: Sequence[NodePod]
) -> tuple[tuple[str, ...], tuple[KeptOff, ...]]:
    """Pods that wait: those the node would take if waiting ones did not count, and those it would not (R-078)."""
    shut, off = [], []
    held = {member.desired.metadata.uid: member.counts.requests for member in members}
    cluster, gates = snapshot.cluster or SchedulingState(), snapshot.age.gates
    for pod in snapshot.unscheduled:
        refusal = kept_off(pod, name, cluster, gates)
        if refusal is None:
            continue
        without = kept_off(pod, name, cluster, gates, held=held)
        full_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if without is None:
            shut.append(full_name)
        else:
            off.append(KeptOff(full_name, ", ".join(without.reasons)))
    return tuple(shut), tuple(off)
