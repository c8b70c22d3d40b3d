"""What a namespace's pods really use, counted again.

Admission charges a growth at once and credits nothing; this controller counts all pods whenever a pod or a quota
changed in what counts, so what shrank, finished or went away is credited once the node has reported it (R-066). A pod
is charged before it is stored: a count that falls in between misses it, so its coming is a reason to count, too.
"""

from msgspec.structs import replace

from podfit.api.core.limits import ResourceQuota
from podfit.api.core.pods import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.decide.quota import pod_usage, recount


class QuotaController(Controller[tuple[str, str]]):
    """Keys are namespace and name of a quota."""

    def __init__(self, client: Client, *, clock: Clock, gates: FeatureGates) -> None:
        self._client = client
        self._clock = clock
        self._gates = gates
        self._quotas = Informer(client, ResourceQuota, clock=clock)
        self._pods = Informer(client, Pod, clock=clock)
        super().__init__(clock, self._quotas, self._pods)
        self._quotas.add_handler(add=self._quota_changed, update=lambda _, new: self._quota_changed(new))
        self._pods.add_handler(
            add=lambda new: self._all_in(new.metadata.namespace), update=self._pod_changed,
            delete=lambda old: self._all_in(old.metadata.namespace))

    def _quota_changed(self, quota: ResourceQuota) -> None:
        self.queue.add((quota.metadata.namespace, quota.metadata.name))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if pod_usage(old, self._gates) != pod_usage(new, self._gates):
            self._all_in(new.metadata.namespace)

    def _all_in(self, namespace: str) -> None:
        for quota in self._quotas.list(namespace):
            self._quota_changed(quota)

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        namespace, name = key
        found = (await self._client.list(ResourceQuota, namespace, fields=f"metadata.name={name}")).items
        if not found:
            return None
        quota = found[0]
        pods = (await self._client.list(Pod, namespace)).items
        counted = recount(quota, pods, self._gates, self._clock.now())
        if counted != quota.status:
            await self._client.update_status(replace(quota, status=counted))
        return None
