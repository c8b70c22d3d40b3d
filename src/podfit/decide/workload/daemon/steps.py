"""The next step of a daemon set: missing pods first, then the rolling update.

A rollout without surge deletes pods of an old revision, as many as may be unavailable, and the first step makes them
anew. With surge the new pod comes first, and the old one goes when the new one is available.
"""

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

import msgspec

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import FAILED, SUCCEEDED, has_ended, is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.daemon.nodes import GENERATION, node_of, suits
from podfit.decide.workload.history import HASH
from podfit.decide.workload.pods import is_available, is_ready, share

ROLLING = "RollingUpdate"
BURST = 250


class Version(msgspec.Struct, frozen=True):
    """The version of the present template: its hash, and its number among all that there were, if that is known."""

    digest: str
    generation: str = ""

    def of(self, pod: Pod) -> bool:
        labels = pod.metadata.labels
        return labels.get(HASH) == self.digest or (bool(self.generation) and labels.get(GENERATION) == self.generation)


class DaemonStep(msgspec.Struct, frozen=True):
    create: tuple[str, ...] = ()
    """Names of nodes."""
    delete: tuple[Pod, ...] = ()
    ended: tuple[Pod, ...] = ()
    """Those of `delete` that have ended by themselves."""


def by_node(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Those that count: one that ended and was asked to go is as good as gone."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if not (pod.metadata.deletion_timestamp and has_ended(pod)):
            found.setdefault(node_of(pod), []).append(pod)
    return found


def replaces(daemons: DaemonSet) -> bool:
    """Whether pods of an old template are replaced before somebody deletes them."""
    return daemons.spec.update_strategy.type == ROLLING


def oldest_first(pods: Sequence[Pod]) -> list[Pod]:
    """Those that have a node come first."""
    return sorted(
        pods, key=lambda pod: (not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name)
    )


def surge(daemons: DaemonSet, wanted: int) -> int:
    rolling = daemons.spec.update_strategy.rolling_update
    if not replaces(daemons) or rolling is None:
        return 0
    return share(rolling.max_surge, wanted, up=True)


def unavailable(daemons: DaemonSet, wanted: int) -> int:
    """At least one, where there is no surge."""
    rolling = daemons.spec.update_strategy.rolling_update
    if not replaces(daemons) or rolling is None:
        return 0
    most = share(rolling.max_unavailable, wanted, up=True)
    return most or (0 if surge(daemons, wanted) else 1)


def manage(
    daemons: DaemonSet, nodes: Sequence[Node], pods: Mapping[str, Sequence[Pod]], version: Version, now: datetime
) -> DaemonStep:
    """One pod on every node that suits, none on others."""
    create, delete, ended = [], [], []
    for node in nodes:
        name = node.metadata.name
        there = pods.get(name, ())
        wanted, may_stay = suits(daemons, node)
        if wanted and not there:
            create.append(name)
        elif may_stay:
            over = [pod for pod in there if not pod.metadata.deletion_timestamp and has_ended(pod)]
            ended += over
            delete += over + _too_many(daemons, there, version, now)
        else:
            delete += [pod for pod in there if not pod.metadata.deletion_timestamp]
    delete += _nowhere(nodes, pods)
    return DaemonStep(tuple(create[:BURST]), tuple(delete[:BURST]), tuple(ended))


def _too_many(daemons: DaemonSet, there: Sequence[Pod], version: Version, now: datetime) -> list[Pod]:
    running = [pod for pod in there if is_active(pod)]
    running = oldest_first(running)
    if len(running) <= 1:
        return []
    if not surge(daemons, len(running)):
        return running[1:]
    new, old = [pod for pod in running if version.of(pod)], [pod for pod in running if not version.of(pod)]
    extra = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], daemons.spec.min_ready_seconds, now)):
        extra.append(old[0])
    return extra


def _nowhere(nodes: Sequence[Node], pods: Mapping[str, Sequence[Pod]]) -> list[Pod]:
    """Pods that wait for a node that has gone."""
    known = {node.metadata.name for node in nodes}
    return [pod for name, there in pods.items() if name not in known for pod in there if not pod.spec.node_name]


def roll(
    daemons: DaemonSet,
    pods: Mapping[str, Sequence[Pod]],
    version: Version,
    wanted: int,
    now: datetime,
    *,
    kept: Container[str] = frozenset(),
) -> DaemonStep:
    """One step of replacing old pods; `wanted` is on how many nodes there are to be pods. Pods with the UIDs `kept`
    are resized instead of replaced."""
    if not replaces(daemons):
        return DaemonStep()
    pairs = {name: _pair(there, version) for name, there in pods.items()}
    if surge(daemons, wanted):
        resized = {name for name, pair in pairs.items() if pair and pair[1] and pair[1].metadata.uid in kept}
        others = {name: pair for name, pair in pairs.items() if name not in resized}
        return _surging(daemons, others, surge(daemons, wanted), now)
    down, replaceable, candidates = 0, [], []
    for pair in pairs.values():
        new, old = pair if pair is not None else (None, None)
        if new is not None and old is None:
            down += not _available(daemons, new, now)
        elif old is not None and old.metadata.uid in kept:
            down += not _available(daemons, old, now)
        elif old is not None and new is None:
            if _available(daemons, old, now):
                candidates.append(old)
            else:
                replaceable.append(old)
                down += 1
        else:
            down += 1  # it is set right by the first step
    room = max(0, unavailable(daemons, wanted) - down)
    return DaemonStep(delete=tuple((*replaceable, *candidates[:room])[:BURST]))


def _surging(
    daemons: DaemonSet, pairs: Mapping[str, tuple[Pod | None, Pod | None] | None], most: int, now: datetime
) -> DaemonStep:
    surged = 0
    delete: list[Pod] = []
    allowed: list[str] = []
    candidates: list[str] = []
    for name, pair in pairs.items():
        if pair is None:
            surged += 1
            continue
        new, old = pair
        if old is None:
            continue
        if new is None:
            (candidates if _available(daemons, old, now) else allowed).append(name)
        elif _available(daemons, new, now):
            delete.append(old)
        else:
            surged += 1
    create = (*allowed, *candidates[: max(0, most - surged)])
    return DaemonStep(create[:BURST], tuple(delete[:BURST]))


def _pair(there: Sequence[Pod], version: Version) -> tuple[Pod | None, Pod | None] | None:
    """The new and the old pod of a node; None when it has several of a sort."""
    staying = [pod for pod in there if not pod.metadata.deletion_timestamp]
    new, old = [pod for pod in staying if version.of(pod)], [pod for pod in staying if not version.of(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return (new[0] if new else None), (old[0] if old else None)


def _available(daemons: DaemonSet, pod: Pod, now: datetime) -> bool:
    return is_available(pod, daemons.spec.min_ready_seconds, now)


def why_ended(pod: Pod, node: str) -> tuple[str, str, str]:
    """Type, reason and words of the event about a pod that ended by itself."""
    place = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node}"
    if pod.status.phase == FAILED:
        return "Warning", "FailedDaemonPod", f"Found failed daemon pod {place}, will try to kill it"
    assert pod.status.phase == SUCCEEDED
    return "Normal", "SucceededDaemonPod", f"Found succeeded daemon pod {place}, will try to delete it"
