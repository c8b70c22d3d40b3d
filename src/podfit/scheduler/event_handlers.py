"""Event handlers: informers' events update the scheduler's cache and requeue pods that may fit now.

The handlers are synchronous: when a watch event arrives, the cache and the queue are right before anything else runs.
"""

from collections.abc import Collection

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.core.features import FeatureGates
from podfit.decide.placement.preempt import Budget
from podfit.decide.placement.requeue import (
    Change,
    ClaimChanged,
    NodeChanged,
    NodeGone,
    PodCame,
    PodGone,
    PodRelabelled,
    PodShrank,
    VolumesChanged,
    own_change_helps,
    shrunk,
)
from podfit.decide.pod.requests import pod_requests
from podfit.scheduler.cache import ClusterCache, Key
from podfit.scheduler.names import NAME, scheduler_of
from podfit.scheduler.queue import SchedulingQueue


class Follower:
    def __init__(
        self, cache: ClusterCache, queue: SchedulingQueue, gates: FeatureGates, names: Collection[str] = (NAME,)
    ) -> None:
        """`names` are those by which pods ask for this scheduler."""
        self._cache = cache
        self._queue = queue
        self._gates, self._names = gates, names
        self.gated: set[Key] = set()

    def pod_added(self, pod: Pod) -> None:
        key = key_of(pod)
        if pod.spec.node_name:
            self._assigned(key, None, pod)
            return
        self._gate(key, pod)
        if _is_of(self._names, pod):
            if pod.status.nominated_node_name:
                self._cache.nominate(pod, pod.status.nominated_node_name)
            self._queue.add(key, pod)

    def pod_updated(self, old: Pod, new: Pod) -> None:
        key = key_of(new)
        if new.spec.node_name:
            self._assigned(key, old, new)
            return
        self._gate(key, new)
        if not _is_of(self._names, new):
            self._leave_queue(key, new)
            return
        self._follow_nomination(key, old, new)
        waiting = self._queue.waiting(key)
        helps = waiting is not None and own_change_helps(waiting, old, new, pod_requests(new, gates=self._gates))
        if helps or not self._queue.knows(key):
            self._queue.add(key, new)
        else:
            self._queue.refresh(key, new)

    def pod_deleted(self, pod: Pod) -> None:
        key = key_of(pod)
        self.gated.discard(key)
        if self._cache.counts(key):
            self._leave_node(key, pod)
        self._leave_queue(key, pod)

    def claim_changed(self, claim: PersistentVolumeClaim) -> None:
        self._changed(ClaimChanged(claim.metadata.namespace, claim.metadata.name))

    def volumes_changed(self) -> None:
        """A volume or a class of storage came, or is different."""
        self._changed(VolumesChanged())

    def node_added(self, node: Node) -> None:
        self._cache.set_node(node)
        self._changed(NodeChanged(None, node))

    def node_updated(self, old: Node, new: Node) -> None:
        self._cache.set_node(new)
        if _matters(old) != _matters(new):
            self._changed(NodeChanged(old, new))

    def node_deleted(self, node: Node) -> None:
        self._cache.remove_node(node.metadata.name)
        self._changed(NodeGone(node))

    def budget_set(self, budget: PodDisruptionBudget) -> None:
        self._cache.budgets[budget.metadata.namespace, budget.metadata.name] = Budget.of(budget)

    def budget_updated(self, _old: PodDisruptionBudget, new: PodDisruptionBudget) -> None:
        self.budget_set(new)

    def budget_deleted(self, budget: PodDisruptionBudget) -> None:
        self._cache.budgets.pop((budget.metadata.namespace, budget.metadata.name), None)

    def namespace_set(self, namespace: Namespace) -> None:
        self._cache.set_namespace(namespace.metadata.name, namespace.metadata.labels)

    def namespace_updated(self, _old: Namespace, new: Namespace) -> None:
        self.namespace_set(new)

    def namespace_deleted(self, namespace: Namespace) -> None:
        self._cache.remove_namespace(namespace.metadata.name)

    def _assigned(self, key: Key, old: Pod | None, pod: Pod) -> None:
        self.gated.discard(key)
        self._queue.remove(key)
        if has_ended(pod):
            self._leave_node(key, pod)
            return
        counted = self._cache.counts(key)
        before, after = self._cache.count(pod, pod.spec.node_name)
        if counted and (less := shrunk(before, after)):
            self._changed(PodShrank(less))
        if old is None or not old.spec.node_name:
            self._changed(PodCame(pod))
        elif old.metadata.labels != pod.metadata.labels:
            self._changed(PodRelabelled(old, pod))

    def _leave_node(self, key: Key, pod: Pod) -> None:
        self._cache.withdraw(key)
        if self._cache.counts(key):
            self._cache.forget(key)
            self._changed(PodGone(pod))

    def _leave_queue(self, key: Key, pod: Pod) -> None:
        self._queue.remove(key)
        if self._cache.withdraw(key):
            self._changed(PodGone(pod))

    def _follow_nomination(self, key: Key, old: Pod, new: Pod) -> None:
        before, after = old.status.nominated_node_name, new.status.nominated_node_name
        if after and not self._cache.counts(key):
            self._cache.nominate(new, after)
        elif before and not after:
            self._cache.withdraw(key)

    def _gate(self, key: Key, pod: Pod) -> None:
        (self.gated.add if pod.spec.scheduling_gates else self.gated.discard)(key)

    def _changed(self, change: Change) -> None:
        self._queue.changed(change, namespaces=self._cache.namespaces)


def key_of(pod: Pod) -> Key:
    return pod.metadata.namespace, pod.metadata.name


def _is_of(names: Collection[str], pod: Pod) -> bool:
    """Whether the pod waits for a scheduler of these names to place it."""
    if has_ended(pod) or pod.metadata.deletion_timestamp or pod.spec.scheduling_gates:
        return False
    return scheduler_of(pod) in names


def _matters(node: Node) -> tuple[object, ...]:
    """What of a node decides whether pods fit it."""
    return node.metadata.labels, node.spec, node.status.allocatable, node.status.declared_features
