"""Resolves a VPA's targetRef to a pod selector; the controller must be the topmost one (V-054).

The seven kinds of `workloads` are followed by informers, all others are asked for their scale.
"""

import asyncio
from typing import Any

import msgspec

from podfit.api.autoscaling_k8s.v1 import CrossVersionObjectReference
from podfit.api.meta.selector_text import parse_labels
from podfit.api.meta.v1.types import OwnerReference
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.selectors import MOST_TERMS, Selector
from podfit.vpa.scales import NOT_FOUND, Scales
from podfit.vpa.workloads import WELL_KNOWN, Workload

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
    selector: Selector
    owners: tuple[OwnerReference, ...]


class _Unread(Exception):
    """Why a controller is not known."""


class Targets:
    def __init__(self, client: Client, clock: Clock, namespace: str = "") -> None:
        self._followed: dict[str, Informer[Any]] = {
            target.kind: Informer(client, target.followed(), clock=clock, namespace=namespace) for target in WELL_KNOWN
        }
        self.scales = Scales(client, clock)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return tuple(self._followed.values())

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

    async def topmost_of(self, namespace: str, owner: Ref) -> Ref | None:
        """The topmost controller from `owner` up; None when that one is not known, or nobody says."""
        try:
            return await self._topmost(namespace, owner, await self._read(namespace, owner))
        except _Unread:
            return None

    def wanted(self, namespace: str, kind: str, name: str) -> int | None:
        """How many pods a controller is to have: 0 when it is gone, None when it does not say or is not followed."""
        if kind not in self._followed:
            return None
        found: Workload | None = self._followed[kind].get(name, namespace)
        return found.wanted() if found is not None else 0

    async def _topmost(self, namespace: str, ref: Ref, controller: _Controller) -> Ref:
        """The last controller on the way up that is well known or can be scaled."""
        seen = [ref]
        while (owner := next((owner for owner in controller.owners if owner.controller), None)) and owner.kind != NODE:
            above = Ref(owner.api_version, owner.kind, owner.name)
            if above in seen:
                raise _Unread(f"cycle detected in the ownership chain of {above}")
            found = await self._find(namespace, above)
            if found is None:
                break
            controller = found
            seen.append(above)
        return seen[-1]

    async def _read(self, namespace: str, ref: Ref) -> _Controller:
        found = await self._find(namespace, ref)
        if found is None:
            raise _Unread(f"{ref.api_version} {ref.kind} {namespace}/{ref.name} has no scale subresource")
        return found

    async def _find(self, namespace: str, ref: Ref) -> _Controller | None:
        """None for a kind that is not followed and cannot be scaled. Raises _Unread."""
        if ref.kind in self._followed:
            return self._well_known(namespace, ref)
        return await self._scaled(namespace, ref)

    def _well_known(self, namespace: str, ref: Ref) -> _Controller:
        found: Workload | None = self._followed[ref.kind].get(ref.name, namespace)
        if found is None:
            raise _Unread(f"{ref.kind} {namespace}/{ref.name} does not exist")
        try:
            selector = found.selector()
            if sum(1 + len(requirement.values) for requirement in selector.requirements) > MOST_TERMS:
                raise ValueError(f"its selector has more than {MOST_TERMS} terms and values")
            return _Controller(selector, found.metadata.owner_references)
        except ValueError as error:
            raise _Unread(f"{ref.kind} {namespace}/{ref.name}: {error}") from error

    async def _scaled(self, namespace: str, ref: Ref) -> _Controller | None:
        """None when its kind cannot be scaled."""
        try:
            scale = await self.scales.find(ref.api_version, ref.kind, namespace, ref.name)
            if scale is None:
                return None
            if not scale.status.selector:
                raise _Unread(f"resource {namespace}/{ref.name} has an empty selector for scale sub-resource")
            return _Controller(parse_labels(scale.status.selector), scale.metadata.owner_references)
        except ApiError as error:
            gone = error.code == NOT_FOUND
            raise _Unread(f"{ref.kind} {namespace}/{ref.name} does not exist" if gone else error.message) from error
        except (ConnectionError, ValueError) as error:
            raise _Unread(str(error)) from error
