"""ResourceQuota: what an object uses is charged in the same transaction that stores it.

So a charge without its object cannot be, whatever fails: a conflict, another plugin's refusal, the store, the client,
the server. Writes that are charged in one namespace take turns here; a charge that another API server made in between
begins again. What a quota's status does not say yet is counted on the spot.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.meta.base import Object
from podfit.api.registry import info_for
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.managed import tracked
from podfit.apiserver.registry.stored import Stored, Superseded
from podfit.core.times import format_time
from podfit.decide.forbidden import Forbidden
from podfit.decide.limits.quota import Present, charge, concerned, count, uncounted
from podfit.decide.limits.quota_usage import Evaluator
from podfit.store.protocol import Companion

ATTEMPTS = 10
MANAGER = "kube-apiserver"  # of the fields that charges write, as upstream
T = TypeVar("T")
Write = Callable[[Sequence[Companion]], Awaitable[T]]
"""Stores an object, and along with it what it is given. Raises Superseded when that was written by another."""


class QuotaAdmission:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._info = info_for(ResourceQuota)
        self._stored = Stored[ResourceQuota](context.store, self._info)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def charged(self, attributes: Attributes, obj: Object, write: Write[T]) -> T:
        """What `write` answers, called with the charges that `obj` makes. Raises 403 when a quota is exceeded."""
        namespace, home = attributes.namespace, attributes.info.home
        if not namespace or not await self._context.settings(ResourceQuota, namespace):
            return await write(())
        rules = concerned(home.resource, home.group, attributes.subresource, obj, attributes.old)
        if rules is None:
            return await write(())
        async with self._turns.setdefault(namespace, asyncio.Lock()):
            for _ in range(ATTEMPTS - 1):
                try:
                    return await write(await self._charges(attributes, obj, rules))
                except Superseded:
                    continue
            return await write(await self._charges(attributes, obj, rules))

    async def _charges(self, attributes: Attributes, obj: Object, rules: Evaluator) -> list[Companion]:
        settings = await self._context.settings(ResourceQuota, attributes.namespace)
        quotas = [await self._counted(quota, rules, attributes) for quota in settings]
        verdict = charge(obj, attributes.old, quotas, self._context.gates, rules=rules)
        if isinstance(verdict, Forbidden):
            raise verdict.error(attributes.name)
        before, now = {quota.metadata.uid: quota for quota in settings}, format_time(self._context.clock.now())
        return [
            self._stored.companion(
                tracked(self._info, quota, before[quota.metadata.uid], manager=MANAGER, subresource="status", now=now),
                expected=int(quota.metadata.resource_version),
            )
            for quota in verdict.quotas
        ]

    async def _counted(self, quota: ResourceQuota, rules: Evaluator, attributes: Attributes) -> ResourceQuota:
        """The quota with what is used of what it limits of this kind; the controller may not have come to it yet."""
        if not uncounted(quota, rules):
            return quota
        info = attributes.info.home
        page = await self._context.store.list(stored.prefix(info, attributes.namespace))
        objects = [stored.decoded(info, record) for record in page.records] if rules.whole else []
        names = [name for name in quota.spec.hard if rules.about(name)]
        limits = replace(quota, spec=replace(quota.spec, hard={name: quota.spec.hard[name] for name in names}))
        present = Present(rules, objects, len(page.records))
        counted = count(limits, [present], self._context.gates, self._context.clock.now())
        hard, used = {**quota.status.hard, **counted.hard}, {**quota.status.used, **counted.used}
        return replace(quota, status=replace(quota.status, hard=hard, used=used))
