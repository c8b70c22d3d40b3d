"""Packing of endpoints into slices: up to a hundred endpoints with the same ports in each.

Few writes matter more than full slices: endpoints stay where they are, new ones go into slices that change anyway, then
into one that has room for all of them, then into new slices. Who has no endpoints has one empty slice.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.discovery.v1.types import Endpoint, EndpointPort, EndpointSlice
from podfit.api.meta.owners import controller_named
from podfit.api.meta.v1.types import ObjectMeta

MANAGED = "endpointslice.kubernetes.io/managed-by"
MOST = 100
Ports: TypeAlias = tuple[EndpointPort, ...]
Desired: TypeAlias = dict[Ports, dict[object, Endpoint]]
"""By their ports, the endpoints by what makes them the same as before."""


class Pattern(msgspec.Struct, frozen=True):
    """What all slices of one owner have in common. `annotated`: the annotations, too."""

    meta: ObjectMeta
    annotated: bool = False

    def slice(self, family: str, ports: Ports | None) -> EndpointSlice:
        """Without endpoints; without ports, too, where it only holds the place, which Go writes as null."""
        return EndpointSlice(metadata=self.meta, address_type=family, endpoints=None, ports=ports)

    def owns(self, slice_: EndpointSlice) -> bool:
        """Whether its controller is that of the pattern's slices."""
        owner = controller_named(self.meta)
        return owner is not None and controller_named(slice_.metadata) == owner

    def dressed(self, meta: ObjectMeta) -> ObjectMeta:
        annotations = self.meta.annotations if self.annotated else meta.annotations
        return replace(meta, labels=self.meta.labels, annotations=annotations)


class Changes(msgspec.Struct):
    create: list[EndpointSlice] = msgspec.field(default_factory=list)
    update: list[EndpointSlice] = msgspec.field(default_factory=list)
    delete: list[EndpointSlice] = msgspec.field(default_factory=list)


def in_order(ports: Iterable[EndpointPort]) -> Ports:
    return tuple(sorted(ports, key=lambda port: (port.name or "", port.port or 0, port.protocol or "")))


def identity(endpoint: Endpoint) -> object:
    """What makes it the same endpoint as before."""
    target = endpoint.target_ref
    return endpoint.addresses, endpoint.node_name, endpoint.hostname, target.uid if target is not None else ""


def pack(pattern: Pattern, family: str, desired: Desired, slices: Sequence[EndpointSlice], made: Changes) -> None:
    """Add to `made` what is to be done about the slices of this family; `desired` is used up."""
    known = [endpoint_slice for endpoint_slice in slices if endpoint_slice.address_type == family]
    by_ports: dict[Ports, list[EndpointSlice]] = {}
    for endpoint_slice in filter(pattern.owns, known):
        by_ports.setdefault(in_order(endpoint_slice.ports or ()), []).append(endpoint_slice)
    deleted = [endpoint_slice for endpoint_slice in known if not pattern.owns(endpoint_slice)]
    created: list[EndpointSlice] = []
    for ports, endpoints in desired.items():
        new = pattern.slice(family, ports)
        made.update += _packed(pattern, new, by_ports.get(ports, []), endpoints, created=created, deleted=deleted)
    for ports, old in by_ports.items():
        deleted += old if ports not in desired else []
    if len(deleted) == len(known) and not created:
        empty = pattern.slice(family, None)
        if len(deleted) == 1 and _is_same(deleted[0], empty, annotated=pattern.annotated):
            deleted = []
        else:
            created.append(empty)
    made.create += created
    made.delete += deleted


def _packed(
    pattern: Pattern,
    new: EndpointSlice,
    known: Sequence[EndpointSlice],
    desired: dict[object, Endpoint],
    *,
    created: list[EndpointSlice],
    deleted: list[EndpointSlice],
) -> list[EndpointSlice]:
    """The slices of these ports that change; others, like `new`, are added to `created` and `deleted`."""
    changed: list[EndpointSlice] = []
    unchanged: list[EndpointSlice] = []
    for endpoint_slice in known:
        kept = [desired.pop(identity(old), None) for old in endpoint_slice.endpoints or ()]
        endpoints = tuple(endpoint for endpoint in kept if endpoint is not None)
        meta = pattern.dressed(endpoint_slice.metadata)
        if not endpoints and endpoint_slice.endpoints:
            deleted.append(endpoint_slice)
        elif endpoints != (endpoint_slice.endpoints or ()) or meta != endpoint_slice.metadata:
            changed.append(replace(endpoint_slice, endpoints=endpoints, metadata=meta))
        else:
            unchanged.append(endpoint_slice)
    left = list(desired.values())
    changed.sort(key=lambda candidate: -_size(candidate))
    for place, candidate in enumerate(changed):
        changed[place], left = _filled(candidate, left)
    room = [endpoint_slice for endpoint_slice in unchanged if _size(endpoint_slice) + len(left) <= MOST]
    if left and len(left) < MOST and room:
        fullest = max(room, key=_size)
        filled, left = _filled(fullest, left)
        changed.append(filled)
    while left:
        made, left = _filled(new, left)
        created.append(made)
    return changed


def _filled(slice_: EndpointSlice, left: list[Endpoint]) -> tuple[EndpointSlice, list[Endpoint]]:
    room = MOST - _size(slice_)
    if room <= 0 or not left:
        return slice_, left
    return replace(slice_, endpoints=(*(slice_.endpoints or ()), *left[:room])), left[room:]


def reusing(pattern: Pattern, made: Changes) -> Changes:
    """One that would be deleted becomes one that would be made."""
    for old in list(made.delete):
        if not made.create:
            break
        new = made.create[-1]
        if old.address_type == new.address_type and pattern.owns(old):
            made.create.pop()
            made.delete.remove(old)
            meta = pattern.dressed(old.metadata)
            made.update.append(replace(old, endpoints=new.endpoints, ports=new.ports, metadata=meta))
    return made


def _size(slice_: EndpointSlice) -> int:
    return len(slice_.endpoints or ())


def _is_same(old: EndpointSlice, new: EndpointSlice, *, annotated: bool) -> bool:
    told = old.metadata.labels, old.metadata.owner_references, old.endpoints, old.ports
    same = told == (new.metadata.labels, new.metadata.owner_references, new.endpoints, new.ports)
    return same and (not annotated or old.metadata.annotations == new.metadata.annotations)
