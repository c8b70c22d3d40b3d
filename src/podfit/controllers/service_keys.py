"""The keys of services to reconcile when a service or a pod changes."""

from abc import abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.workqueue import FIRST_DELAY
from podfit.controllers.base import BY_NAMESPACE, Controller, Key, by_namespace, key_of
from podfit.core.clock import Clock
from podfit.core.times import format_time
from podfit.decide.workload.services.pods import Triggers, differs, selects, triggered
from podfit.net.loop_turns import beside

WORKERS = 5


class ServiceController(Controller[Key]):
    """Keys are namespace and name of a service."""

    def __init__(self, informers: Informers, *others: Informer[Any], clock: Clock, retry: float = FIRST_DELAY) -> None:
        self._services, self._pods = informers.of(Service), informers.of(Pod)
        self._services.add_index(BY_NAMESPACE, by_namespace)
        self._pods.add_index(BY_NAMESPACE, by_namespace)
        self._triggers: dict[Key, Triggers] = {}
        super().__init__(clock, self._services, self._pods, *others, workers=WORKERS, retry=retry)
        self._services.add_handler(
            add=lambda new: self.queue.add(key_of(new)),
            update=lambda _, new: self.queue.add(key_of(new)),
            delete=lambda old: self.queue.add(key_of(old)),
        )
        self._pods.add_handler(add=self._pod_seen, update=self._pod_changed, delete=self._pod_seen)

    def _pod_seen(self, *states: Pod) -> None:
        for service in self._services.by_index(BY_NAMESPACE, states[0].metadata.namespace):
            if any(selects(service, state.metadata) for state in states):
                self.queue.add(key_of(service))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if differs(old, new):
            self._pod_seen(old, new)

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        service = self._services.get(name, namespace)
        if service is None:
            self._triggers.pop(key, None)
            await self._gone(key)
        elif service.spec.selector and service.spec.type != "ExternalName":
            pods = self._pods.by_index(BY_NAMESPACE, namespace)
            before = self._triggers.get(key, Triggers())
            chosen, known, when = await beside(len(pods), _behind, service, pods, before)
            await self._write(service, chosen, _stamp(when))
            self._triggers[key] = known
            self.rest(key, len(chosen))
        return None

    @abstractmethod
    async def _write(self, service: Service, pods: list[Pod], when: str) -> None:
        """Bring up to date what is told of a service; `when` is since when it could have been, or empty."""

    @abstractmethod
    async def _gone(self, key: Key) -> None:
        """The service is no more."""


def _behind(service: Service, pods: Iterable[Pod], before: Triggers) -> tuple[list[Pod], Triggers, datetime | None]:
    """Those that it selects, in order, and since when there was a change."""
    chosen = sorted((pod for pod in pods if selects(service, pod.metadata)), key=key_of)
    return chosen, *triggered(service, chosen, before)


def _stamp(when: datetime | None) -> str:
    return "" if when is None else format_time(when)
