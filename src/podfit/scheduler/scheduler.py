"""The scheduler: watches pods and nodes, asks `decide.placement`, binds; where nothing fits, asks for preemption.

Informer handlers only update the cache and the queue; one loop takes pods from the queue in order. Bindings and
evictions run beside it, since the cache already counts the pod where it will go.
"""

import asyncio
import logging
from collections.abc import Sequence

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.api.storage.v1.types import StorageClass
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.decide.placement.place import Placed, Unschedulable, place
from podfit.decide.placement.preempt import Budget, CannotPreempt, Eviction, preempt, unschedulable_message
from podfit.decide.placement.requeue import PodGone, Waiting
from podfit.decide.placement.rules import MOST_AT_ONCE, questions_of
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Resident
from podfit.decide.placement.volumes import ClaimLookup, claims_of
from podfit.net.metrics import Metrics
from podfit.scheduler.cache import ClusterCache, Key
from podfit.scheduler.event_handlers import Follower
from podfit.scheduler.metrics import SchedulerMetrics
from podfit.scheduler.names import NAME, scheduler_of
from podfit.scheduler.profiles import Profile, Profiles
from podfit.scheduler.queue import SchedulingQueue
from podfit.scheduler.volumes import NotBound, VolumeBinder
from podfit.scheduler.workload_selectors import WorkloadSelectors

__all__ = ["NAME", "Profile", "Scheduler"]

log = logging.getLogger(__name__)
SWEEP_EVERY = 30.0  # seconds
MOST_UNDER_WAY = 8
"""Bindings at a time: more would only wait in the API server, which refuses a crowd. Nothing is decided meanwhile."""


class Scheduler:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        profiles: Sequence[Profile],
        clock: Clock,
        gates: FeatureGates,
        metrics: Metrics | None = None,
    ) -> None:
        """Pods that name one of `profiles` are its own; at least one, each of another name. Who shares `informers` with
        it runs them."""
        self._clock = clock
        self._gates = gates
        self._cache = ClusterCache(gates)
        self._queue = SchedulingQueue(clock)
        self._profiles = Profiles(profiles, client, self._cache, clock)
        self._evicting: set[Key] = set()
        self._under_way = asyncio.Semaphore(MOST_UNDER_WAY)
        self._pods, self._nodes = informers.of(Pod), informers.of(Node)
        self._namespaces, self._budgets = informers.of(Namespace), informers.of(PodDisruptionBudget)
        follow = self._follow = Follower(self._cache, self._queue, gates, self._profiles.names)
        self._pods.add_handler(add=follow.pod_added, update=follow.pod_updated, delete=follow.pod_deleted)
        self._nodes.add_handler(add=follow.node_added, update=follow.node_updated, delete=follow.node_deleted)
        self._namespaces.add_handler(
            add=follow.namespace_set, update=follow.namespace_updated, delete=follow.namespace_deleted
        )
        self._budgets.add_handler(add=follow.budget_set, update=follow.budget_updated, delete=follow.budget_deleted)
        self._volume_claims, self._classes = informers.of(PersistentVolumeClaim), informers.of(StorageClass)
        self._volume_claims.add_handler(
            add=follow.claim_changed, update=lambda _, new: follow.claim_changed(new), delete=follow.claim_changed
        )
        self._volumes = informers.of(PersistentVolume)
        for storage in (self._classes, self._volumes):
            storage.add_handler(
                add=lambda _: follow.volumes_changed(), update=lambda _old, _new: follow.volumes_changed()
            )
        self._selectors = WorkloadSelectors(informers)
        self._binder = VolumeBinder(client, self._volume_claims, clock)
        self._volume_claims.add_handler(
            add=lambda _: self._binder.changed(),
            update=lambda _old, _new: self._binder.changed(),
            delete=lambda _: self._binder.changed(),
        )
        self._claims = ClaimLookup(
            lambda namespace, name: self._volume_claims.get(name, namespace),
            self._classes.get,
            self._volumes.get,
            self._volumes.list,
        )
        self.metrics = metrics or Metrics()
        self._measured = SchedulerMetrics(self.metrics, self._pending, self._queue.refused_by, self._profiles.names)

    async def run(self) -> None:
        """Place pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            informers = (
                self._namespaces,
                self._classes,
                self._volumes,
                self._volume_claims,
                self._budgets,
                *self._selectors.informers,
                self._nodes,
                self._pods,
            )
            await asyncio.gather(*(informer.synced.wait() for informer in informers))
            group.create_task(self._sweep())
            while True:
                async with self._under_way:
                    pass  # there is room for one more binding
                key, pod = await self._queue.pop()
                await self._guarded(group, key, pod)
                await asyncio.sleep(0)  # others of this process have their turn between two pods

    def _pending(self) -> dict[str, int]:
        return {**self._queue.sizes(), "gated": len(self._follow.gated)}

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_EVERY)
            self._queue.sweep()

    async def _guarded(self, group: asyncio.TaskGroup, key: Key, pod: Pod) -> None:
        """One pod that cannot be decided about keeps no other from being placed."""
        began, profile = self._clock.monotonic(), self._profiles.of(pod)
        try:
            spread = self._selectors.default_spread(pod, profile.spread)
            subject = Resident.of(pod, gates=self._gates, placed=False, default_spread=spread)
            if self._costs_much(subject):
                await self._attempt_beside(group, key, subject)
                return
            await profile.rankings.prepare(key, subject)
            if self._queue.knows(key):
                self._attempt(group, key, subject)
        except Exception:
            self._measured.attempt("error", profile.name, self._clock.monotonic() - began)
            log.exception("placing failed pod=%s/%s", *key)
            self._queue.retry_later(key)

    def _attempt(self, group: asyncio.TaskGroup, key: Key, subject: Resident) -> None:
        """No await in here: decided and counted in one look at the cluster."""
        began = self._clock.monotonic()
        verdict = self._decided(key, subject)
        if isinstance(verdict, Placed):
            self._accept(group, key, subject, verdict, began)
            return
        self._park(key, subject, verdict, began)
        if key not in self._evicting:
            views, budgets = self._cache.views(), tuple(self._cache.budgets.values())
            outcome = _preempting(subject, verdict, views, self._cache.namespaces, budgets)
            self._refused(group, key, subject, verdict, outcome)

    async def _attempt_beside(self, group: asyncio.TaskGroup, key: Key, subject: Resident) -> None:
        """In a thread, over the cluster as it is now: what comes meanwhile counts for the next attempt, as upstream's
        snapshot has it."""
        news, began = self._queue.news, self._clock.monotonic()
        views, namespaces = tuple(self._cache.views()), dict(self._cache.namespaces)
        verdict = await asyncio.to_thread(self._among, subject, views, namespaces)
        if not self._queue.knows(key):
            return
        if isinstance(verdict, Placed):
            if self._cache.view(verdict.node) is None:
                self._queue.retry_later(key)
            else:
                self._accept(group, key, subject, verdict, began)
            return
        self._park(key, subject, verdict, began, news=news)
        if key not in self._evicting:
            budgets = tuple(self._cache.budgets.values())
            outcome = await asyncio.to_thread(_preempting, subject, verdict, views, namespaces, budgets)
            if self._queue.knows(key):
                self._refused(group, key, subject, verdict, outcome)

    def _costs_much(self, subject: Resident) -> bool:
        """Whether it has so many rules, or those beside whom it would be have, that others would wait too long."""
        own = questions_of(subject.pod, nodes=len(self._cache), volumes=self._volumes.count)
        return own + sum(self._cache.many_rules.values()) > MOST_AT_ONCE

    def _accept(self, group: asyncio.TaskGroup, key: Key, subject: Resident, verdict: Placed, began: float) -> None:
        if self._cache.withdraw(key) not in ("", verdict.node):
            self._freed(subject.pod)
        self._cache.assume(subject, verdict.node)
        group.create_task(self._bind(key, subject.pod, verdict.node, began))

    def _park(
        self, key: Key, subject: Resident, verdict: Unschedulable, began: float, *, news: int | None = None
    ) -> None:
        self._queue.park(key, Waiting(subject, verdict), news=news)
        self._measured.attempt("unschedulable", scheduler_of(subject.pod), self._clock.monotonic() - began)

    def _decided(self, key: Key, subject: Resident) -> Placed | Unschedulable:
        rankings = self._profiles.of(subject.pod).rankings
        if not claims_of(subject.pod) and (verdict := rankings.place(key, subject)) is not None:
            return verdict
        return self._among(subject, self._cache.views(), self._cache.namespaces)

    def _among(
        self, subject: Resident, views: Sequence[NodeInfo], namespaces: NamespaceLabels
    ) -> Placed | Unschedulable:
        profile = self._profiles.of(subject.pod)
        return place(
            subject, views, namespaces=namespaces, claims=self._claims, weights=profile.weights, fit=profile.fit
        )

    def _refused(
        self,
        group: asyncio.TaskGroup,
        key: Key,
        subject: Resident,
        verdict: Unschedulable,
        outcome: Eviction | CannotPreempt | None,
    ) -> None:
        pod, nominated = subject.pod, subject.pod.status.nominated_node_name
        if outcome is None:
            group.create_task(self._explain(pod, verdict.message, nominated))
            return
        self._measured.preemptions.inc()
        if isinstance(outcome, CannotPreempt):
            if not outcome.keeps_nomination:
                nominated = ""
                if self._cache.withdraw(key):
                    self._freed(pod)
            group.create_task(self._explain(pod, unschedulable_message(verdict, outcome), nominated))
            return
        self._measured.victims.observe(len(outcome.victims))
        displaced = self._cache.nominated_below(outcome.node, subject.priority)
        for victim in displaced:
            self._cache.withdraw((victim.metadata.namespace, victim.metadata.name))
        self._cache.nominate(pod, outcome.node)
        self._evicting.add(key)
        group.create_task(self._evict(key, pod, verdict.message, outcome, displaced))

    def _freed(self, pod: Pod) -> None:
        """Room that was kept for this pod is there for others, although no event of the API tells so."""
        self._queue.changed(PodGone(pod), namespaces=self._cache.namespaces)

    async def _bind(self, key: Key, pod: Pod, node: str, began: float) -> None:
        tries, arrived = self._queue.record(key)
        try:
            if pod.spec.volumes:
                await self._binder.bind(pod, node)
            async with self._under_way:
                await self._profiles.of(pod).writes.bind(pod, node)
        except (ApiError, ConnectionError, NotBound) as error:
            self._measured.attempt("error", scheduler_of(pod), self._clock.monotonic() - began)
            log.warning("binding failed pod=%s/%s node=%s error=%s", *key, node, error)
            self._cache.forget(key)
            self._freed(pod)
            self._queue.retry_later(key)
            return
        now = self._clock.monotonic()
        self._measured.attempt("scheduled", scheduler_of(pod), now - began)
        self._measured.placed(now - arrived, tries)

    async def _explain(self, pod: Pod, message: str, nominated: str) -> None:
        try:
            await self._profiles.of(pod).writes.explain(pod, message, nominated=nominated)
        except (ApiError, ConnectionError) as error:
            log.info("reason not written pod=%s/%s error=%s", pod.metadata.namespace, pod.metadata.name, error)

    async def _evict(self, key: Key, pod: Pod, message: str, eviction: Eviction, displaced: list[Pod]) -> None:
        """Until the last victim has been asked to go, no second eviction is made for the same pod."""
        try:
            writes = self._profiles.of(pod).writes
            await writes.explain(pod, message, nominated=eviction.node)
            await writes.evict(pod, eviction)
            await writes.withdraw(displaced)
        except (ApiError, ConnectionError) as error:
            log.warning("preemption failed pod=%s/%s node=%s error=%s", *key, eviction.node, error)
            self._cache.withdraw(key)
            self._freed(pod)
            self._queue.retry_later(key)
        finally:
            self._evicting.discard(key)


def _preempting(
    subject: Resident,
    verdict: Unschedulable,
    views: Sequence[NodeInfo],
    namespaces: NamespaceLabels,
    budgets: Sequence[Budget],
) -> Eviction | CannotPreempt | None:
    """None where nobody's going would help."""
    if not views or verdict.outright:
        return None
    return preempt(subject, verdict, views, namespaces=namespaces, budgets=budgets)
