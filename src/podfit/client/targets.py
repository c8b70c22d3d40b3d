"""Resolves a VPA's targetRef to a pod selector; the controller must be the topmost one (V-054).

The seven kinds of `workloads` are followed by informers, all others are asked for their scale. Whoever names an owner
that is not there, or was made anew under its name, belongs to none; chains of owners are followed `CHAIN_LIMIT` steps.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from podfit.api.autoscaling_k8s.v1 import CrossVersionObjectReference
from podfit.api.meta.owners import CHAIN_LIMIT, ObjectIdentity, controller_of, group_of, names
from podfit.api.meta.selector_text import parse_labels
from podfit.api.meta.v1.types import OwnerReference
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.client.scales import NOT_FOUND, Scales
from podfit.client.workloads import WELL_KNOWN, Workload
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.selectors import MOST_TERMS, Selector

NODE = "Node"


class Unsupported(Exception):
    """The target gives no selector; the text is for the VPA's condition ConfigUnsupported."""


class Ref(msgspec.Struct, frozen=True):
    api_version: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class _Controller(msgspec.Struct, frozen=True):
    identity: ObjectIdentity
    selector: Selector
    owner_references: tuple[OwnerReference, ...]

    @property
    def above(self) -> OwnerReference | None:
        """What controls it and may be a workload, which a node is not."""
        owner = controller_of(self)
        return None if owner is None or owner.kind == NODE else owner


class _Unread(Exception):
    """Why a controller is not known."""


class _Followed(Protocol):
    def get(self, name: str, namespace: str = "") -> Any:
        """None when it is not there."""


class _Read:
    """What was read once, by namespace and name."""

    def __init__(self, objects: Mapping[tuple[str, str], Any]) -> None:
        self._objects = objects

    def get(self, name: str, namespace: str = "") -> Any:
        return self._objects.get((namespace, name))


class Targets:
    """Targets of what informers follow, or of a `snapshot` of workloads by kind, which are all that are looked at."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        namespace: str = "",
        *,
        snapshot: Mapping[str, Mapping[tuple[str, str], Any]] | None = None,
    ) -> None:
        self._informers: dict[str, Informer[Any]] = {}
        self._followed: dict[str, _Followed]
        if snapshot is not None:
            self._followed = {target.kind: _Read(snapshot.get(target.kind, {})) for target in WELL_KNOWN}
        else:
            self._informers = {
                target.kind: Informer(client, target.followed(), clock=clock, namespace=namespace)
                for target in WELL_KNOWN
            }
            self._followed = {**self._informers}
        self._groups = {target.kind: group_of(target.api_version) for target in WELL_KNOWN}
        self.scales = Scales(client, clock)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return tuple(self._informers.values())

    async def synced(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self.informers))

    async def selector(self, namespace: str, target: CrossVersionObjectReference | None) -> Selector:
        """Raises Unsupported."""
        if target is None:
            raise Unsupported("Cannot read targetRef. Reason: targetRef not defined")
        ref = Ref(target.api_version, target.kind, target.name)
        try:
            controller = await self._read(namespace, ref)
        except _Unread as error:
            raise Unsupported(f"Cannot read targetRef. Reason: {error}") from error
        try:
            topmost = await self._topmost(namespace, ref, controller)
        except _Unread as error:
            text = f"Error checking if target {ref} is a topmost well-known or scalable controller: {error}"
            raise Unsupported(text) from error
        if topmost != ref:
            text = "has a parent controller but it should point to a topmost well-known or scalable controller"
            raise Unsupported(f"The target {ref} {text}")
        return controller.selector

    async def topmost_of(self, namespace: str, owner: OwnerReference) -> Ref | None:
        """The topmost controller from `owner` up; None when that one is not known, or nobody says."""
        try:
            found = await self._owner(namespace, owner)
            return None if found is None else await self._topmost(namespace, _ref(owner), found)
        except _Unread:
            return None

    def wanted(self, owner: ObjectIdentity) -> int | None:
        """How many pods a controller is to have: 0 when it is gone, None when it does not say or is not followed."""
        if self._groups.get(owner.kind) != owner.group:
            return None
        found: Workload | None = self._followed[owner.kind].get(owner.name, owner.namespace)
        if found is None or self._identity(owner.kind, found) != owner:
            return 0
        return found.wanted()

    async def _topmost(self, namespace: str, ref: Ref, controller: _Controller) -> Ref:
        """The last controller on the way up that is well known or can be scaled."""
        seen, topmost = {ref}, ref
        while (owner := controller.above) is not None:
            above = _ref(owner)
            if above in seen:
                raise _Unread(f"cycle detected in the ownership chain of {above}")
            if len(seen) > CHAIN_LIMIT:
                raise _Unread(f"more than {CHAIN_LIMIT} owners stand above {ref}")
            found = await self._owner(namespace, owner)
            if found is None:
                break
            controller, topmost = found, above
            seen.add(above)
        return topmost

    async def _owner(self, namespace: str, owner: OwnerReference) -> _Controller | None:
        """What the reference names. None for a kind that is not followed and cannot be scaled. Raises _Unread."""
        ref = _ref(owner)
        if self._groups.get(ref.kind) == group_of(ref.api_version):
            found: _Controller | None = self._well_known(namespace, ref)
        else:
            found = await self._scaled(namespace, ref, owner.uid)
        if found is not None and not names(owner, namespace, found.identity):
            raise _Unread(f"{ref.kind} {namespace}/{ref.name} does not exist")
        return found

    async def _read(self, namespace: str, ref: Ref) -> _Controller:
        """What a targetRef names; of a well-known kind the version does not count, nor does the group, as upstream."""
        found = self._well_known(namespace, ref) if ref.kind in self._followed else await self._scaled(namespace, ref)
        if found is None:
            raise _Unread(f"{ref.api_version} {ref.kind} {namespace}/{ref.name} has no scale subresource")
        return found

    def _identity(self, kind: str, found: Workload) -> ObjectIdentity:
        meta = found.metadata
        return ObjectIdentity(self._groups[kind], kind, meta.namespace, meta.name, meta.uid)

    def _well_known(self, namespace: str, ref: Ref) -> _Controller:
        found: Workload | None = self._followed[ref.kind].get(ref.name, namespace)
        if found is None:
            raise _Unread(f"{ref.kind} {namespace}/{ref.name} does not exist")
        try:
            selector = found.selector()
            if sum(1 + len(requirement.values) for requirement in selector.requirements) > MOST_TERMS:
                raise ValueError(f"its selector has more than {MOST_TERMS} terms and values")
            return _Controller(self._identity(ref.kind, found), selector, found.metadata.owner_references)
        except ValueError as error:
            raise _Unread(f"{ref.kind} {namespace}/{ref.name}: {error}") from error

    async def _scaled(self, namespace: str, ref: Ref, uid: str = "") -> _Controller | None:
        """None when its kind cannot be scaled. `uid`: of the one that is meant."""
        try:
            scale = await self.scales.find(ref.api_version, ref.kind, namespace, ref.name, uid)
            if scale is None:
                return None
            if not scale.status.selector:
                raise _Unread(f"resource {namespace}/{ref.name} has an empty selector for scale sub-resource")
            identity = ObjectIdentity(group_of(ref.api_version), ref.kind, namespace, ref.name, scale.metadata.uid)
            return _Controller(identity, parse_labels(scale.status.selector), scale.metadata.owner_references)
        except ApiError as error:
            gone = error.code == NOT_FOUND
            raise _Unread(f"{ref.kind} {namespace}/{ref.name} does not exist" if gone else error.message) from error
        except (ConnectionError, ValueError) as error:
            raise _Unread(str(error)) from error


def _ref(owner: OwnerReference) -> Ref:
    return Ref(owner.api_version, owner.kind, owner.name)
