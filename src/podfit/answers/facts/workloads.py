"""Reads what controls pods: one by one and upwards, so that no right to list workloads is needed, or all of them where
the question is about a whole namespace.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from podfit.answers.facts.rights import why_unread
from podfit.api.autoscaling_k8s.v1 import CrossVersionObjectReference
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import CHAIN_LIMIT, ObjectIdentity, Placed, controller_named, group_of
from podfit.client.rest import Client
from podfit.client.targets import Targets
from podfit.client.workloads import WELL_KNOWN, WellKnown
from podfit.core.errors import ApiError
from podfit.net.system import SystemClock

NOT_FOUND = 404
KINDS = {(group_of(known.api_version), known.kind): known for known in WELL_KNOWN}
BY_KIND = {known.kind: known for known in WELL_KNOWN}
"""As an autoscaler's target is read: neither its version counts nor its group."""


class Controllers(msgspec.Struct):
    """What controls each controller, by identity. `is_read` says whether one would be among them if it were there: of
    other kinds, custom ones and those that may not be read, a reference is believed.
    """

    above: dict[ObjectIdentity, ObjectIdentity | None]
    is_read: Callable[[ObjectIdentity], bool]

    def chain(self, pod: Pod) -> tuple[ObjectIdentity, ...]:
        """From the nearest to the topmost. Who names one that is not there, or not any more, belongs to nobody."""
        found, owner = list[ObjectIdentity](), controller_named(pod.metadata)
        while owner is not None and len(found) < CHAIN_LIMIT and (owner in self.above or not self.is_read(owner)):
            found.append(owner)
            owner = self.above.get(owner)
        return tuple(found)


class WorkloadName(msgspec.Struct, frozen=True, order=True):
    """The topmost controller that is known of a pod, as kind/name; a pod of nobody is its own."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


def topmost(pod: Pod, controllers: Controllers) -> WorkloadName:
    chain = controllers.chain(pod)
    if not chain:
        return WorkloadName(pod.metadata.namespace, "Pod", pod.metadata.name)
    return WorkloadName(chain[-1].namespace, chain[-1].kind, chain[-1].name)


async def listed_controllers(
    client: Client, namespace: str, pods: Iterable[Pod], unread: Callable[[str], None]
) -> Controllers:
    """All of the kinds that are named on the way up from the pods of a namespace, or of all when it is empty. Kinds
    that may not be listed are told to `unread`.
    """
    above, read, asked = dict[ObjectIdentity, ObjectIdentity | None](), set[WellKnown](), set[WellKnown]()
    named = {owner for pod in pods if (owner := controller_named(pod.metadata)) is not None}
    while wanted := {kind for owner in named if (kind := _kind_of(owner)) is not None} - asked:
        for kind in sorted(wanted, key=lambda kind: kind.resource):
            if (listed := await _controllers_of(client, namespace, kind, unread)) is not None:
                above.update(listed)
                read.add(kind)
        asked |= wanted
        named = {upper for upper in above.values() if upper is not None}
    return Controllers(above, lambda owner: _kind_of(owner) in read)


async def _controllers_of(
    client: Client, namespace: str, kind: WellKnown, unread: Callable[[str], None]
) -> dict[ObjectIdentity, ObjectIdentity | None] | None:
    """What controls each object of a kind; None when they are not to be read."""
    try:
        found = (await client.list(kind.followed(), namespace)).items
    except ApiError as error:
        unread(f"{kind.kind}s: {error.message}")
        return None
    group, metas = group_of(kind.api_version), [workload.metadata for workload in found]
    return {
        ObjectIdentity(group, kind.kind, meta.namespace, meta.name, meta.uid): controller_named(meta) for meta in metas
    }


def _kind_of(owner: ObjectIdentity) -> WellKnown | None:
    return KINDS.get((owner.group, owner.kind))


class WorkloadReader:
    """Reads the workloads of a namespace. What may not be read is told to `unread`, and taken for absent."""

    def __init__(self, client: Client, namespace: str, unread: Callable[[str], None]) -> None:
        self._client, self._namespace, self._unread = client, namespace, unread
        self._found: dict[str, dict[tuple[str, str], Any]] = {}
        self._asked: set[tuple[WellKnown, str]] = set()
        self._refused: set[tuple[WellKnown, str]] = set()
        self._above: dict[ObjectIdentity, ObjectIdentity | None] = {}

    async def targets(self, pods: Iterable[Pod], targets: Iterable[CrossVersionObjectReference | None] = ()) -> Targets:
        """What controls these pods, up to the topmost, and what these targets of autoscalers name."""
        named = ((BY_KIND.get(target.kind), target.name) for target in targets if target)
        wanted = {(known, name) for known, name in named if known is not None} | set(
            _owners(pod.metadata for pod in pods)
        )
        for _ in range(CHAIN_LIMIT + 1):
            new = sorted(wanted - self._asked, key=lambda asked: (asked[0].resource, asked[1]))
            if not new:
                break
            self._asked |= set(new)
            found = await asyncio.gather(*(self._read(*asked) for asked in new))
            wanted = set(_owners(read.metadata for read in found if read is not None))
        return Targets(self._client, SystemClock(), self._namespace, snapshot=self._found)

    @property
    def controllers(self) -> Controllers:
        """Those that were read."""
        return Controllers(self._above, self._was_read)

    def could_read(self, target: CrossVersionObjectReference) -> bool:
        """False for one that was refused, which `unread` was told."""
        known = BY_KIND.get(target.kind)
        return known is None or (known, target.name) not in self._refused

    def _was_read(self, owner: ObjectIdentity) -> bool:
        known = KINDS.get((owner.group, owner.kind))
        return known is not None and (known, owner.name) in self._asked - self._refused

    async def _read(self, known: WellKnown, name: str) -> Any:
        try:
            found = await self._client.get(known.followed(), name, self._namespace)
        except ApiError as error:
            if error.code != NOT_FOUND:
                self._refused.add((known, name))
                self._unread(f"{known.kind} {name}: {why_unread(error)}")
            return None
        self._found.setdefault(known.kind, {})[self._namespace, name] = found
        meta = found.metadata
        identity = ObjectIdentity(group_of(known.api_version), known.kind, self._namespace, meta.name, meta.uid)
        self._above[identity] = controller_named(meta, self._namespace)
        return found


def _owners(metas: Iterable[Placed]) -> Iterator[tuple[WellKnown, str]]:
    """The controllers of objects that are of a kind which is followed."""
    for meta in metas:
        owner = controller_named(meta)
        known = KINDS.get((owner.group, owner.kind)) if owner is not None else None
        if owner is not None and known is not None:
            yield known, owner.name
