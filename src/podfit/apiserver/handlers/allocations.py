"""Addresses and node ports of services: each is a key in the store while a service has it.

A key is made before the service is stored and goes after the service has let go of it, so two services never have the
same address, whatever API server they were made through. Between the two writes a server may die: a key whose service
is not there, or does not have it, is taken over by the next who wants it, once any request of the former is over.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.services.types import Service
from podfit.api.core.v1.services.validation import needs_health_check
from podfit.apiserver.context import Context
from podfit.apiserver.registry.service_allocation import (
    Allocated,
    ServiceRanges,
    allocated_to,
    family_errors,
    missing_node_ports,
    needs_address,
    with_families,
)
from podfit.core.errors import ApiError, forbidden
from podfit.core.fields import invalid, refusal
from podfit.core.times import format_time, parse_time
from podfit.store.protocol import KeyExists, Record, RevisionConflict

ROOT = "/registry/podfit/services"
_GUESSES = 16
_ADDRESSES, _PORTS = "addresses", "ports"


class AllocationOwner(msgspec.Struct, frozen=True):
    """Who has it, and since when."""

    namespace: str
    name: str
    uid: str
    since: str


def may_allocate(new: Any, old: Any) -> bool:
    """Whether the object, or what it was, is one that takes something of the cluster's own."""
    return isinstance(new, Service) or isinstance(old, Service)


@asynccontextmanager
async def allocated(context: Context, new: Any, old: Any, *, dry: bool) -> AsyncIterator[Any]:
    """The object with what it needs of the cluster's own, for the time in which it is stored; None for a deletion.

    When the write is refused, what was taken for it is given back; when the write succeeds, what the old object had
    and the new one has not. Where nobody knows whether it was written, both are kept.
    """
    if not may_allocate(new, old):
        yield new
        return
    taking = _Taking(context, new or old, dry=dry)
    try:
        complete = await taking.complete(old) if new is not None else None
        leaving = [] if dry else await _records(context, allocated_to(old) - allocated_to(complete))
        yield complete
    except ApiError:
        await taking.undo()
        raise
    finally:
        taking.end()
    for record in leaving:
        await _delete(context, record)


async def _records(context: Context, what: Allocated) -> list[Record]:
    """As they are before the write: one that another request takes over meanwhile is not this one's to give back."""
    found = [await context.store.get(key) for key in _keys(what)]
    return [record for record in found if record is not None]


async def _delete(context: Context, record: Record) -> None:
    try:
        await context.store.delete(record.key, expected=record.mod_revision)
    except RevisionConflict:
        return  # someone else was quicker, and it is his now


def _keys(what: Allocated) -> list[str]:
    return [*(_key(_ADDRESSES, text) for text in what.addresses), *(_key(_PORTS, str(port)) for port in what.ports)]


def _key(kind: str, name: str) -> str:
    return f"{ROOT}/{kind}/{name}"


class _Taking(msgspec.Struct):
    """What one write takes; `service` grows as it is given more."""

    context: Context
    service: Service
    dry: bool
    taken: list[Record] = []

    async def complete(self, old: Service | None) -> Service:
        ranges = self.context.ranges
        self.service = with_families(self.service, ranges)
        if errors := family_errors(self.service, ranges):
            raise refusal("Service", self.service.metadata.name, errors)
        await self._asked(old, ranges)
        if needs_address(self.service.spec):
            text = await self._any_address(ranges)
            self._spec(cluster_ip=text, cluster_ips=(text,))
        for index, shared in list(missing_node_ports(self.service.spec)):
            await self._node_port(index, shared, ranges)
        if needs_health_check(self.service.spec) and not self.service.spec.health_check_node_port:
            self._spec(health_check_node_port=await self._any_port(ranges))
        return self.service

    def _spec(self, **fields: Any) -> None:
        self.service = replace(self.service, spec=replace(self.service.spec, **fields))

    async def _asked(self, old: Service | None, ranges: ServiceRanges) -> None:
        """What the client named. A dry run does not look whether others have it."""
        wanted = allocated_to(self.service) - allocated_to(old)
        for text in sorted(wanted.addresses):
            if not ranges.has_address(text):
                why = (
                    f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {ranges.addresses}"
                )
                raise self._no_address(text, why)
            if not self.dry and not await self._take(_ADDRESSES, text):
                raise self._no_address(text, "provided IP is already allocated")
        if self.dry:
            return
        for port in sorted(wanted.ports):
            if not ranges.has_port(port):
                limits = f"The range of valid ports is {ranges.first_port}-{ranges.last_port}"
                raise self._no_port(port, f"provided port is not in the valid range. {limits}")
            if not await self._take(_PORTS, str(port)):
                raise self._no_port(port, "provided port is already allocated")

    def _no_address(self, text: str, why: str) -> ApiError:
        value = list(self.service.spec.cluster_ips)
        error = invalid("spec.clusterIPs", value, f"failed to allocate IP {text}: {why}")
        return refusal("Service", self.service.metadata.name, [error])

    def _no_port(self, port: int, why: str) -> ApiError:
        spec = self.service.spec
        index = next((index for index, service_port in enumerate(spec.ports) if service_port.node_port == port), None)
        path = "spec.healthCheckNodePort" if index is None else f"spec.ports[{index}].nodePort"
        return refusal("Service", self.service.metadata.name, [invalid(path, port, why)])

    async def _node_port(self, index: int, shared: int, ranges: ServiceRanges) -> None:
        ports = list(self.service.spec.ports)
        now = next((port.node_port for port in ports if port.port == ports[index].port and port.node_port), shared)
        ports[index] = replace(ports[index], node_port=now or await self._any_port(ranges))
        self._spec(ports=tuple(ports))

    async def _any_address(self, ranges: ServiceRanges) -> str:
        """One of the upper ones if possible: the lower ones are left for those who ask for a certain one."""
        upper = ranges.size - ranges.static
        for _ in range(_GUESSES if upper > 0 else 0):
            text = ranges.address(ranges.static + self.context.random.below(upper))
            if await self._take(_ADDRESSES, text):
                return text
        numbers = (*range(ranges.static, ranges.size), *range(ranges.static))
        return await self._search(_ADDRESSES, map(ranges.address, numbers), "range is full")

    async def _any_port(self, ranges: ServiceRanges) -> int:
        count = ranges.last_port - ranges.first_port + 1
        if self.dry:
            return ranges.first_port + count + 1  # as upstream's dry runs answer: one that nobody can have
        for _ in range(_GUESSES):
            port = ranges.first_port + self.context.random.below(count)
            if await self._take(_PORTS, str(port)):
                return port
        every = map(str, range(ranges.first_port, ranges.last_port + 1))
        return int(await self._search(_PORTS, every, "range is full"))

    async def _search(self, kind: str, names: Any, full: str) -> str:
        """The first free one, then the first that nobody has any more."""
        page = await self.context.store.list(_key(kind, ""))
        known = {record.key.rpartition("/")[2] for record in page.records}
        for name in names:
            if name not in known and await self._take(kind, name):
                return str(name)
        for name in sorted(known):
            if await self._take(kind, name):
                return name
        what = "a serviceIP" if kind == _ADDRESSES else "a nodePort"
        raise forbidden("services", self.service.metadata.name, f"failed to allocate {what}: {full}")

    async def _take(self, kind: str, name: str) -> bool:
        """False when another service has it."""
        if self.dry:
            return True
        meta, key = self.service.metadata, _key(kind, name)
        owner = AllocationOwner(meta.namespace, meta.name, meta.uid, format_time(self.context.clock.now()))
        value = msgspec.json.encode(owner)
        try:
            self._begin(await self.context.store.create(key, value))
        except KeyExists:
            return await self._take_over(key, value)
        return True

    async def _take_over(self, key: str, value: bytes) -> bool:
        record = await self.context.store.get(key)
        if record is None or await self._in_use(record):
            return False
        try:
            self._begin(await self.context.store.update(key, value, expected=record.mod_revision))
        except RevisionConflict:
            return False
        return True

    async def _in_use(self, record: Record) -> bool:
        owner = msgspec.json.decode(record.value, type=AllocationOwner)
        if self.context.pending_allocations.has(record, self.context.clock, written=parse_time(owner.since)):
            return True
        service = await self.context.find(Service, owner.name, owner.namespace)
        if service is None or service.metadata.uid != owner.uid:
            return False
        return record.key in _keys(allocated_to(service))

    def _begin(self, record: Record) -> None:
        self.taken.append(record)
        self.context.pending_allocations.begin(record, self.context.clock)

    def end(self) -> None:
        for record in self.taken:
            self.context.pending_allocations.end(record)

    async def undo(self) -> None:
        for record in self.taken:
            await _delete(self.context, record)
