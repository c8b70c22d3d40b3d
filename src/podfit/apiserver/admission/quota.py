"""ResourceQuota: a pod is charged before it is stored, so two requests cannot both take the last of a quota.

The charge is a compare-and-swap on the quota's status; who loses decides again on what the other left. A pod that is
then not stored after all stays charged until the quota controller counts again.
"""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.limits import ResourceQuota
from podfit.api.core.pods import Pod
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import Passive
from podfit.apiserver.context import Attributes
from podfit.apiserver.stored import Stored
from podfit.core.errors import ApiError, conflict
from podfit.decide.quota import charge
from podfit.decide.refused import Refused

ATTEMPTS = 10


class ResourceQuotaAdmission(Passive):
    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if not _concerns(attributes):
            return
        charged: set[str] = set()
        for _ in range(ATTEMPTS):
            quotas = [_counted(each) for each in await self.context.settings(ResourceQuota, attributes.namespace)]
            open_ = [each for each in quotas if each.metadata.uid not in charged]
            verdict = charge(obj, attributes.old, open_, self.context.gates)
            if isinstance(verdict, Refused):
                raise verdict.error(attributes.name)
            if attributes.dry_run or await self._store(verdict.quotas, charged):
                return
        raise conflict("resourcequotas", "", "the quota is written too often; please try again")

    async def _store(self, quotas: tuple[ResourceQuota, ...], charged: set[str]) -> bool:
        """False when another request was quicker, or the quota is gone; those that were stored are `charged` once."""
        stored = Stored[ResourceQuota](self.context.store, info_for(ResourceQuota))
        try:
            for quota in quotas:
                await stored.update(quota, expected=int(quota.metadata.resource_version))
                charged.add(quota.metadata.uid)
        except ApiError:
            return False
        return True


def _counted(quota: ResourceQuota) -> ResourceQuota:
    """A quota whose status was not written yet limits by its spec, from nothing used."""
    return quota if quota.status.hard else replace(quota, status=replace(quota.status, hard=quota.spec.hard))


def _concerns(attributes: Attributes) -> bool:
    if attributes.info.type is not Pod:
        return False
    created = attributes.operation == "CREATE" and not attributes.subresource
    return created or (attributes.operation == "UPDATE" and attributes.subresource in ("", "resize"))
