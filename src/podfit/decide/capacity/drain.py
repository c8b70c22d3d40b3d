"""Drain rules: whether a pod may be moved off its node so that the node can go, and if not, by which rule.

The rules are asked in upstream's order (cluster-autoscaler, simulator/drainability), and the first one with an opinion
decides. A pod that no rule has an opinion of is movable, under the control of its disruption budgets.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from podfit.api.core.v1.pods.phase import FAILED, SUCCEEDED
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.owners import controller_of, group_of
from podfit.api.meta.v1.types import OwnerReference
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.core.times import parse_time
from podfit.decide.lifecycle.termination import spec_grace
from podfit.decide.workload.disruption import covers

DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM_NAMESPACE = "kube-system"
"""Seconds that a pod has to end when it does not say."""
LONG_TERMINATING = 30
"""Seconds above its grace after which a pod that is being deleted no longer counts."""
REPLICATED_KINDS = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
"""Kinds of controllers that are known to make a pod anew."""


class Outcome(StrEnum):
    """What a rule says of a pod; the values are upstream's words."""

    MOVABLE = "Undefined"
    DRAIN_OK = "DrainOk"
    BLOCKED = "BlockDrain"
    SKIPPED = "SkipDrain"
    WAITS = "WaitForCompletion"


class Drainability(msgspec.Struct, frozen=True):
    """`reason` and `text` are upstream's, of a pod that blocks."""

    outcome: Outcome
    reason: str = ""
    text: str = ""


class DrainOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Upstream's flags of these names, with its defaults."""

    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    min_replica_count: int = 0
    blocking_system_pod_timeout: timedelta = timedelta(hours=1)


DEFAULT_OPTIONS = DrainOptions()
Controllers = Mapping[tuple[str, str, str], int | None]
"""Controllers that exist, by kind, namespace and name, with the replicas that they ask for where they say so."""


class DrainContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules look at beside the pod. `controllers` is None where nobody looked whether controllers exist."""

    now: datetime
    options: DrainOptions = DEFAULT_OPTIONS
    budgets: Sequence[PodDisruptionBudget] = ()
    controllers: Controllers | None = None

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The disruption budgets of the pod, in the order in which they were given."""
        return [budget for budget in self.budgets if _speaks_of(budget, pod)]


def drainability(pod: Pod, context: DrainContext) -> Drainability:
    """What the first rule with an opinion says of the pod."""
    opinions = (rule(pod, context) for rule in RULES)
    return next((opinion for opinion in opinions if opinion is not None), Drainability(Outcome.MOVABLE))


def is_daemon_set_pod(pod: Pod) -> bool:
    """Whether it is one by its controller, of whatever API group, or because it says so."""
    owner = controller_of(pod.metadata)
    return (owner is not None and owner.kind == "DaemonSet") or pod.metadata.annotations.get(DAEMON_SET_POD) == "true"


def is_long_terminating(pod: Pod, now: datetime) -> bool:
    """Whether the pod should have ended long ago, so that its node seems to be gone."""
    deleted = pod.metadata.deletion_timestamp
    if not deleted:
        return False
    return (now - parse_time(deleted)).total_seconds() > spec_grace(pod) + LONG_TERMINATING


def _speaks_of(budget: PodDisruptionBudget, pod: Pod) -> bool:
    return budget.metadata.namespace == pod.metadata.namespace and covers(budget, pod)


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _blocked(reason: str, text: str) -> Drainability:
    return Drainability(Outcome.BLOCKED, reason, text)


def _mirror(pod: Pod, context: DrainContext) -> Drainability | None:
    return Drainability(Outcome.SKIPPED) if is_mirror(pod) else None


def _long_terminating(pod: Pod, context: DrainContext) -> Drainability | None:
    return Drainability(Outcome.SKIPPED) if is_long_terminating(pod, context.now) else None


class _Kind(msgspec.Struct, frozen=True):
    """A kind of controller that is looked up: its group (None: of any), resource, and the words when it is missing."""

    group: str | None
    resource: str
    missing: str


_LOOKED_UP = {
    "ReplicationController": _Kind(
        None, "replicationcontroller", "replication controller for {pod} is not available, err: "
    ),
    "DaemonSet": _Kind("apps", "daemonset.apps", "daemonset for {pod} is not present, err: "),
    "Job": _Kind(None, "job.batch", "job for {pod} is not available: err: "),
    "ReplicaSet": _Kind(None, "replicaset.apps", "replication controller for {pod} is not available, err: "),
    "StatefulSet": _Kind("apps", "statefulset.apps", "statefulset for {pod} is not available: err: "),
}
_COUNTED = ("ReplicationController", "ReplicaSet")


def _controller_exists(pod: Pod, context: DrainContext) -> Drainability | None:
    owner, options = controller_of(pod.metadata), context.options
    if owner is None or context.controllers is None or not options.skip_nodes_with_custom_controller_pods:
        return None
    kind = looked_up(pod, owner)
    if kind is None:
        return None
    key = (owner.kind, pod.metadata.namespace, owner.name)
    if key not in context.controllers:
        missing = kind.missing.format(pod=_full_name(pod))
        return _blocked("ControllerNotFound", f'{missing}{kind.resource} "{owner.name}" not found')
    replicas, least = context.controllers[key], options.min_replica_count
    if owner.kind in _COUNTED and replicas is not None and replicas < least:
        text = f"replication controller for {_full_name(pod)} has too few replicas spec: {replicas} min: {least}"
        return _blocked("MinReplicasReached", text)
    return None


def looked_up(pod: Pod, owner: OwnerReference) -> _Kind | None:
    """How this controller of the pod is looked up; None for one that nobody knows how to."""
    if is_daemon_set_pod(pod) and owner.kind not in ("DaemonSet", "ReplicationController"):
        return None
    kind = _LOOKED_UP.get(owner.kind)
    return kind if kind is not None and kind.group in (None, group_of(owner.api_version)) else None


def _daemon_set(pod: Pod, context: DrainContext) -> Drainability | None:
    return Drainability(Outcome.DRAIN_OK) if is_daemon_set_pod(pod) else None


def _safe_to_evict(pod: Pod, context: DrainContext) -> Drainability | None:
    return Drainability(Outcome.DRAIN_OK) if pod.metadata.annotations.get(SAFE_TO_EVICT) == "true" else None


def _terminal(pod: Pod, context: DrainContext) -> Drainability | None:
    """A pod that has ended, and is not to run again. Upstream's autoscaler, unlike `phase.has_ended`, counts one that
    ended well as running where its containers always start again."""
    phase, policy = pod.status.phase, pod.spec.restart_policy
    ended = phase == FAILED or (phase == SUCCEEDED and policy in ("Never", "OnFailure"))
    return Drainability(Outcome.DRAIN_OK) if ended else None


def _on_completion(pod: Pod, context: DrainContext) -> Drainability | None:
    return Drainability(Outcome.WAITS) if pod.metadata.annotations.get(SAFE_TO_EVICT) == "on-completion" else None


def _replicated(pod: Pod, context: DrainContext) -> Drainability | None:
    owner = controller_of(pod.metadata)
    known = owner is not None and owner.kind in REPLICATED_KINDS
    if known or (owner is not None and not context.options.skip_nodes_with_custom_controller_pods):
        return None
    return _blocked("NotReplicated", f"{_full_name(pod)} is not replicated")


def _system(pod: Pod, context: DrainContext) -> Drainability | None:
    options = context.options
    if not options.skip_nodes_with_system_pods or pod.metadata.namespace != SYSTEM_NAMESPACE or context.covering(pod):
        return None
    created = pod.metadata.creation_timestamp
    if created and context.now - parse_time(created) > options.blocking_system_pod_timeout:
        return Drainability(Outcome.DRAIN_OK)
    text = f"non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present: {pod.metadata.name}"
    return _blocked("UnmovableKubeSystemPod", text)


def _not_safe_to_evict(pod: Pod, context: DrainContext) -> Drainability | None:
    if pod.metadata.annotations.get(SAFE_TO_EVICT) != "false":
        return None
    return _blocked("NotSafeToEvictAnnotation", f"pod annotated as not safe to evict present: {pod.metadata.name}")


def _local_storage(pod: Pod, context: DrainContext) -> Drainability | None:
    if not context.options.skip_nodes_with_local_storage:
        return None
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    if not any(_is_local(volume) and volume.name not in safe for volume in pod.spec.volumes):
        return None
    return _blocked("LocalStorageRequested", f"pod with local storage present: {pod.metadata.name}")


def _is_local(volume: Volume) -> bool:
    """Whether what is in it is lost when the pod moves; what is in memory is lost anyway."""
    in_files = volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
    return volume.host_path is not None or in_files


def _budget(pod: Pod, context: DrainContext) -> Drainability | None:
    if all(budget.status.disruptions_allowed >= 1 for budget in context.covering(pod)):
        return None
    return _blocked("NotEnoughPdb", f"not enough pod disruption budget to move {_full_name(pod)}")


RULES: tuple[Callable[[Pod, DrainContext], Drainability | None], ...] = (
    _mirror,
    _long_terminating,
    _controller_exists,
    _daemon_set,
    _safe_to_evict,
    _terminal,
    _on_completion,
    _replicated,
    _system,
    _not_safe_to_evict,
    _local_storage,
    _budget,
)


class Blocking(msgspec.Struct, frozen=True):
    """The pod that keeps a node, and the rule."""

    pod: Pod
    reason: str
    text: str


class DrainPlan(msgspec.Struct, frozen=True):
    """A node's pods: those that need a place elsewhere, those of daemon sets, those whose end is waited for, and those
    that may not be moved."""

    move: tuple[Pod, ...] = ()
    daemon_set: tuple[Pod, ...] = ()
    on_completion: tuple[Pod, ...] = ()
    blocking: tuple[Blocking, ...] = ()


def drain_plan(pods: Iterable[Pod], context: DrainContext, *, judge_all: bool = False) -> DrainPlan:
    """Sorts the pods of a node in their order: up to the first one that blocks, unless all are to be judged."""
    move: list[Pod] = []
    daemon_set: list[Pod] = []
    on_completion: list[Pod] = []
    blocking: list[Blocking] = []
    for pod in pods:
        verdict = drainability(pod, context)
        if verdict.outcome is Outcome.BLOCKED:
            blocking.append(Blocking(pod, verdict.reason, verdict.text))
            if not judge_all:
                break
        elif verdict.outcome is Outcome.WAITS:
            on_completion.append(pod)
        elif verdict.outcome is not Outcome.SKIPPED:
            (daemon_set if is_daemon_set_pod(pod) else move).append(pod)
    return DrainPlan(tuple(move), tuple(daemon_set), tuple(on_completion), tuple(blocking))


class BudgetCheck(msgspec.Struct, frozen=True):
    """Whether budgets let pods go: at all, and all at once. `blocking` is the last one that is over a budget."""

    can_remove: bool = True
    in_parallel: bool = True
    blocking: Pod | None = None


def check_budgets(pods: Sequence[Pod], budgets: Iterable[PodDisruptionBudget]) -> BudgetCheck:
    """The budgets' verdict on a node's pods together, whatever their rules say: safe-to-evict does not make the API
    grant an eviction."""
    over: Pod | None = None
    for budget in budgets:
        allowed = budget.status.disruptions_allowed
        covered = [pod for pod in pods if _speaks_of(budget, pod)]
        if covered and allowed < 1:
            return BudgetCheck(can_remove=False, in_parallel=False, blocking=covered[0])
        over = covered[-1] if len(covered) > allowed else over
    return BudgetCheck(in_parallel=over is None, blocking=over)
