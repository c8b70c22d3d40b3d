"""The resource quota controller: recounts what a namespace's objects use.

Admission charges a growth with the write and credits nothing. This controller counts when a quota is new or limits
something else, when a pod, a service or a claim came or changed in what counts, and when any object went away: so
what shrank, finished or is gone is credited, of a pod once the node has reported it (R-066). Whoever follows all kinds
(the garbage collector) tells of what is `gone`. A status is only written over the one it was counted for, so a charge
made meanwhile is never lost.
"""

from msgspec.structs import replace

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import Object
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import BY_NAMESPACE, Controller, by_namespace
from podfit.controllers.garbage.graph import Item, Marked
from podfit.controllers.served_kinds import Served, served
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.decide.limits.quota import Present, count
from podfit.decide.limits.quota_scopes import scoped_by
from podfit.decide.limits.quota_usage import Evaluator, evaluator, of_name
from podfit.net.loop_turns import beside

WHOLE: dict[str, type[Object]] = {"pods": Pod, "services": Service, "persistentvolumeclaims": PersistentVolumeClaim}
READ = 3  # times what is decided about an object, it takes to read it
AGAIN = 300.0  # seconds after which everything is counted again
Key = tuple[str, str]


class QuotaController(Controller[Key]):
    """Keys are namespace and name of a quota."""

    def __init__(self, client: Client, *, informers: Informers, clock: Clock, gates: FeatureGates) -> None:
        self._client = client
        self._clock = clock
        self._gates = gates
        self._quotas = informers.of(ResourceQuota)
        self._quotas.add_index(BY_NAMESPACE, by_namespace)
        self._kinds: dict[tuple[str, str], Served] = {}
        followed = {resource: informers.of(kind) for resource, kind in WHOLE.items()}
        super().__init__(clock, self._quotas, *followed.values())
        self._quotas.add_handler(
            add=self._quota_changed,
            update=self._quota_updated,
            delete=lambda old: self._changed(old.metadata.namespace, "resourcequotas", ""),
        )
        for resource, informer in followed.items():
            self._follow(resource, informer)

    def _follow(self, resource: str, informer: Informer[Object]) -> None:
        rules = evaluator(resource, "")
        assert rules is not None

        def changed(obj: Object) -> None:
            self._changed(obj.metadata.namespace, resource, "")

        def updated(old: Object, new: Object) -> None:
            limited = self._quotas.by_index(BY_NAMESPACE, new.metadata.namespace)
            if limited and _counts(rules, old, self._gates) != _counts(rules, new, self._gates):
                changed(new)

        informer.add_handler(add=changed, update=updated, delete=changed)

    def gone(self, item: Item) -> None:
        """An object does not exist any more."""
        if item.served.resource not in WHOLE or item.served.group:
            self._changed(item.meta.namespace, item.served.resource, item.served.group)

    def _quota_updated(self, old: ResourceQuota, new: ResourceQuota) -> None:
        """A charge alone is no reason to count."""
        if new.spec != old.spec or new.status.hard != new.spec.hard:
            self._quota_changed(new)

    def _quota_changed(self, quota: ResourceQuota) -> None:
        self.queue.add((quota.metadata.namespace, quota.metadata.name))

    def _changed(self, namespace: str, resource: str, group: str) -> None:
        rules = None
        for quota in self._quotas.by_index(BY_NAMESPACE, namespace):
            rules = rules or evaluator(resource, group)
            if rules is not None and any(map(rules.about, quota.spec.hard)):
                self._quota_changed(quota)

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        found = (await self._client.list(ResourceQuota, namespace, fields=f"metadata.name={name}")).items
        if not found:
            return None
        quota = found[0]
        wanted = {kind for kind in map(of_name, quota.spec.hard) if kind is not None}
        present = [await self._present(namespace, rules) for kind in sorted(wanted) if (rules := evaluator(*kind))]
        known = [kind for kind in present if kind]
        size = sum(len(kind.objects) for kind in known)
        counted = await beside(size, count, quota, known, self._gates, self._clock.now())
        if counted != quota.status:
            await self._client.update_status(replace(quota, status=counted))
        self.rest(key, READ * size)
        return AGAIN

    async def _present(self, namespace: str, rules: Evaluator) -> Present | None:
        """None when the server does not have the kind."""
        if rules.whole:
            return Present(rules, (await self._client.list(WHOLE[rules.resource], namespace)).items)
        kind = await self._kind(rules.resource, rules.group)
        if kind is None:
            return None
        try:
            page = await self._client.list(kind.decoded_as(Marked), namespace, limit=1)
        except ApiError as error:
            if error.code != 404:
                raise
            self._kinds.pop((rules.resource, rules.group))  # the definition is gone
            return None
        return Present(rules, number=len(page.items) + (page.remaining or 0))

    async def _kind(self, resource: str, group: str) -> Served | None:
        if (resource, group) not in self._kinds:
            found = (await served(self._client, "list", "create")).kinds
            self._kinds = {(kind.resource, kind.group): kind for kind in found if kind.namespaced}
        return self._kinds.get((resource, group))


def _counts(rules: Evaluator, obj: Object, gates: FeatureGates) -> object:
    return rules.usage(obj, gates, None), scoped_by(obj)
