"""Scale-down: which nodes are not needed, since when, and which of them go now (C-045 to C-060).

Each candidate is judged by `decide.capacity.removal`, as `podfit why node/NAME --removable` judges it, on nodes whose
pods count with what their VPAs recommend; pods that moved off one candidate have their places when the next is judged.
A node that went and was missed soon after keeps its group as it is for an hour.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.core.quantity import ZERO
from podfit.decide.capacity.demand import by_node, with_sizes
from podfit.decide.capacity.drain import DrainContext
from podfit.decide.capacity.look import Kept, Look, Moment, Removing, State
from podfit.decide.capacity.readiness import TO_BE_DELETED, NodeReadiness, is_going
from podfit.decide.capacity.registered import ClusterCounts, GroupState
from podfit.decide.capacity.removal import Obstacle, Removal, Surroundings, Templates, Underused, removal
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.placement.view import NodeInfo, Resident

GIB = 1 << 30
MOST_SIMULATED = 30
"""Candidates with pods that are judged in one look, as upstream's scale-down-non-empty-candidates-count."""
MISSED_WITHIN, STEADY = 1800.0, 3600.0
"""Seconds: a group that grows so soon after a node of it went keeps its nodes for so long."""
_LASTING = ("BlockedByPod", "NoPlaceToMovePods")
"""Reasons for which a node is not judged again for a while (C-056), unless it has become empty."""


class Candidate(msgspec.Struct, frozen=True):
    """A node that could go."""

    node: Node
    group: GroupState
    ready: bool
    found: Removal

    @property
    def empty(self) -> bool:
        return not self.found.plan.move

    @property
    def share(self) -> float:
        return self.found.share.share if self.found.share is not None else 0.0


class Unneeded(msgspec.Struct, frozen=True):
    """`candidates` could go; `kept` says of every other node of a group why it stays; `later` nodes were not judged in
    this look, so what was known of them holds."""

    candidates: tuple[Candidate, ...]
    kept: Mapping[str, Kept]
    later: frozenset[str]


def unneeded_nodes(
    views: Sequence[NodeInfo],
    look: Look,
    counts: ClusterCounts,
    state: State,
    moment: Moment,
    rules: tuple[AutoscalerSettings, DrainContext],
) -> Unneeded:
    """`views` are the nodes as they will be: with what VPAs recommend, and with pods that are about to come."""
    settings, context = rules
    on_node = by_node(look.pods)
    search = _Search(views, look, settings, context)
    kept: dict[str, Kept] = {}
    later: set[str] = set()
    candidates: list[Candidate] = []
    for group, node, ready in _in_order(counts, on_node, state):
        name, before = node.metadata.name, state.kept.get(node.metadata.name)
        reason = _filtered(node, group, settings, ready=ready)
        if reason is not None:
            kept[name] = reason
        elif before is not None and moment.at < before.until and on_node.get(name):
            kept[name] = before
        elif not search.knows(node) or (search.exhausted and on_node.get(name)):
            later.add(name)
        else:
            answer = search.judge(node)
            if not answer.obstacles:
                candidates.append(Candidate(node, group, ready, answer))
            else:
                kept[name] = _kept(answer.obstacles, moment.at + settings.scale_down.recheck)
    return Unneeded(tuple(candidates), kept, frozenset(later))


def _in_order(
    counts: ClusterCounts, on_node: Mapping[str, Sequence[Pod]], state: State
) -> Iterable[tuple[GroupState, Node, bool]]:
    """Those that are unneeded already first, then those with the fewest pods."""
    nodes = [
        (group, node, node_state is NodeReadiness.READY)
        for group in counts.groups
        for node, node_state in group.nodes
        if node_state in (NodeReadiness.READY, NodeReadiness.UNREADY)
    ]
    return sorted(
        nodes,
        key=lambda one: (
            one[1].metadata.name not in state.unneeded,
            len(on_node.get(one[1].metadata.name, ())),
            one[1].metadata.name,
        ),
    )


def _filtered(node: Node, group: GroupState, settings: AutoscalerSettings, *, ready: bool) -> Kept | None:
    """What is known of a node without looking at its pods."""
    if is_going(node):
        return Kept("CurrentlyBeingDeleted", "it is being deleted")
    if group.group.problem:
        return Kept("NotUnneededOtherReason", group.group.problem)
    if group.group.target <= group.group.min_size:
        return Kept("NodeGroupMinSizeReached", f"its group has its least size, {group.group.min_size}")
    if not ready and not settings.scale_down.unready_too:
        return Kept("ScaleDownUnreadyDisabled", "it is not ready, and such nodes are not removed")
    return None


def _kept(obstacles: Sequence[Obstacle], until: float) -> Kept:
    """The first obstacle, under upstream's word for a pod that may not move."""
    obstacle = obstacles[0]
    own = ("NotUnderutilized", "ScaleDownDisabledAnnotation", "UnexpectedError", "ResizeInProgress")
    reason = obstacle.reason
    if reason not in (*own, "NoPlaceToMovePods", "BlockedByOnCompletionPod"):
        reason = "BlockedByPod"
    text = obstacle.text
    if obstacle.pod is not None:
        name = f"{obstacle.pod.metadata.namespace}/{obstacle.pod.metadata.name}"
        text = text if name in text else f"{name}: {text}"
    return Kept(reason, text, until if reason in _LASTING else float("-inf"))


class _Search:
    """Judges candidates one after another; what was moved stays moved."""

    def __init__(
        self, views: Sequence[NodeInfo], look: Look, settings: AutoscalerSettings, context: DrainContext
    ) -> None:
        self._look, self._context = look, context
        down = settings.scale_down
        self._underused = Underused(
            threshold=down.threshold,
            ignore_daemon_sets=down.ignore_daemon_sets,
            ignore_mirror_pods=down.ignore_mirror_pods,
        )
        self._views = {view.name: view for view in views}
        self._left = MOST_SIMULATED

    def knows(self, node: Node) -> bool:
        return node.metadata.name in self._views

    @property
    def exhausted(self) -> bool:
        return self._left <= 0

    def judge(self, node: Node) -> Removal:
        """The judgement on a node with pods that other candidates have left to it."""
        pods = [resident.pod for resident in self._views[node.metadata.name].residents]
        around = Surroundings(
            views=tuple(self._views.values()),
            namespaces=self._look.namespaces,
            claims=self._look.claims,
            default_spread=self._look.default_spread,
            gates=self._look.gates,
        )
        cheap = removal(node, pods, self._context, None, {}, self._underused)
        if cheap.obstacles or not cheap.plan.move:
            answer = cheap
        else:
            self._left -= 1
            answer = removal(node, pods, self._context, around, self._successors(pods), self._underused)
        if not answer.obstacles:
            self._views.pop(node.metadata.name, None)
            for move in answer.moves:
                self._moved(move.pod, move.node)
        return answer

    def _moved(self, pod: Pod, to: str) -> None:
        view = self._views[to]
        there = replace(pod, spec=replace(pod.spec, node_name=to))
        self._views[to] = view.plus(Resident.of(there, gates=self._look.gates))

    def _successors(self, pods: Iterable[Pod]) -> Templates:
        """What controllers make anew, with what VPAs recommend."""
        made: dict[tuple[str, str], PodSpec] = {}
        for pod in pods:
            key = pod.metadata.namespace, pod.metadata.name
            template = self._look.templates.get(key)
            recommended = self._look.recommended.get(pod.metadata.uid)
            if template is not None:
                made[key] = template
            if recommended:
                whole = pod if template is None else replace(pod, spec=template)
                made[key] = with_sizes(whole, recommended).spec
        return made


# ------------------------------------------------------------------ who goes now


class Going(msgspec.Struct, frozen=True):
    """`now` are removed in this look; `waiting` says why the others are not yet, `due` at which moment they could."""

    now: tuple[Candidate, ...]
    waiting: Mapping[str, Kept]
    due: Mapping[str, float]


def who_goes(
    candidates: Sequence[Candidate], state: State, counts: ClusterCounts, at: float, settings: AutoscalerSettings
) -> Going:
    """Those of the nodes that could go, empty ones first, within what may be removed at once."""
    down, now, waiting, due = settings.scale_down, list[Candidate](), dict[str, Kept](), dict[str, float]()
    sizes = {group.group.id: group.group.target for group in counts.groups}
    for removing in state.removing.values():
        sizes[removing.group] = sizes.get(removing.group, 0) - 1
    budget = _Budget(state.removing.values(), down.at_once, down.drained_at_once)
    room = _Minimum(counts, settings)
    for candidate in sorted(candidates, key=lambda one: (not one.empty, one.share, one.node.metadata.name)):
        name, group = candidate.node.metadata.name, candidate.group.group
        since = state.unneeded.get(name, at)
        wanted = down.unneeded if candidate.ready else down.unready
        due[name] = max(since + wanted, state.steady.get(group.id, float("-inf")), cooldown_until(state, settings))
        reason = _why_later(candidate, since, at, settings, state)
        if reason is None and sizes[group.id] <= group.min_size:
            reason = Kept("NodeGroupMinSizeReached", f"its group has its least size, {group.min_size}")
        if reason is None and not room.allows(candidate.node):
            reason = Kept("MinimalResourceLimitExceeded", "the cluster would have too few CPUs or too little memory")
        if reason is None and not budget.take(drains=not candidate.empty):
            reason = Kept("NotUnneededOtherReason", "as many nodes as may are being removed")
        if reason is not None:
            waiting[name] = reason
            continue
        sizes[group.id] -= 1
        room.take(candidate.node)
        now.append(candidate)
    return Going(tuple(now), waiting, due)


def cooldown_until(state: State, settings: AutoscalerSettings) -> float:
    down = settings.scale_down
    return max(
        state.scaled_up_at + down.after_add,
        state.failed_at + down.after_failure,
        state.removed_at + (down.after_delete or settings.interval),
    )


def _why_later(
    candidate: Candidate, since: float, at: float, settings: AutoscalerSettings, state: State
) -> Kept | None:
    """Unneeded for exactly the time is not yet long enough (C-053)."""
    down = settings.scale_down
    wanted = down.unneeded if candidate.ready else down.unready
    if at - since <= wanted:
        word = "NotUnneededLongEnough" if candidate.ready else "NotUnreadyLongEnough"
        return Kept(word, f"it has not been needed for {at - since:.0f} s of {wanted:.0f} s")
    if at < state.steady.get(candidate.group.group.id, float("-inf")):
        text = "a node of its group was removed lately, and one was needed again soon after"
        return Kept("NotUnneededOtherReason", text)
    if at < cooldown_until(state, settings):
        return Kept("NotUnneededOtherReason", "nodes were added or removed, or a removal failed, a short while ago")
    return None


class _Budget:
    def __init__(self, removing: Iterable[Removing], nodes: int, drained: int) -> None:
        under_way = list(removing)
        self._nodes = nodes - len(under_way)
        self._drained = drained - sum(one.drains for one in under_way)

    def take(self, *, drains: bool) -> bool:
        if self._nodes < 1 or (drains and self._drained < 1):
            return False
        self._nodes -= 1
        self._drained -= drains
        return True


class _Minimum:
    """CPUs and memory that the cluster keeps (cores-total, memory-total)."""

    def __init__(self, counts: ClusterCounts, settings: AutoscalerSettings) -> None:
        self._least = settings.scale_up.cores.least * 1000, settings.scale_up.memory.least * GIB
        nodes = [node for group in counts.groups for node, _ in group.nodes if not _is_tainted(node)]
        self._cpu = sum(_capacity(node)[0] for node in nodes)
        self._memory = sum(_capacity(node)[1] for node in nodes)

    def allows(self, node: Node) -> bool:
        cpu, memory = _capacity(node)
        least_cpu, least_memory = self._least
        keeps_cpu = not least_cpu or self._cpu - cpu >= least_cpu
        return keeps_cpu and (not least_memory or self._memory - memory >= least_memory)

    def take(self, node: Node) -> None:
        cpu, memory = _capacity(node)
        self._cpu, self._memory = self._cpu - cpu, self._memory - memory


def _capacity(node: Node) -> tuple[int, int]:
    return node.status.capacity.get("cpu", ZERO).milli(), node.status.capacity.get("memory", ZERO).value()


def _is_tainted(node: Node) -> bool:
    return any(taint.key == TO_BE_DELETED for taint in node.spec.taints)
