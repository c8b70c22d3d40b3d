"""Kinds by their names, and scales of their objects through the scale subresource.

Which kinds there are is asked of the server and remembered for 5 minutes; a scale that is found is remembered for 10.
One that is changed is read and written anew by its `path`.
"""

from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec

from podfit.api.autoscaling.v1.types import Scale
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

KINDS_SECONDS, SCALE_SECONDS = 300.0, 600.0
NOT_FOUND = 404


class NoKind(Exception):
    """No version of the group serves such a kind; the message is upstream's."""


class Place(msgspec.Struct, frozen=True):
    """Where objects of a kind are: `root` is the path of a version of their group."""

    root: str
    resource: str
    scalable: bool

    def scale(self, namespace: str, name: str) -> str:
        return f"{self.root}/namespaces/{namespace}/{self.resource}/{quote(name, safe='')}/scale"


class _Kind(msgspec.Struct, frozen=True):
    name: str
    kind: str


class _Kinds(msgspec.Struct, frozen=True):
    resources: tuple[_Kind, ...] | None = ()  # Go writes an empty list as null


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    versions: tuple[_Version, ...] = ()


class Scales:
    """`missing_seconds`: for how long it is believed that there is no such kind, or that it cannot be scaled."""

    def __init__(self, client: Client, clock: Clock, *, missing_seconds: float = KINDS_SECONDS) -> None:
        self._client, self._clock, self._missing_seconds = client, clock, missing_seconds
        self._places: dict[tuple[str, str], tuple[float, Place | None]] = {}
        self._scales: dict[str, tuple[float, Scale]] = {}

    async def find(self, api_version: str, kind: str, namespace: str, name: str, uid: str = "") -> Scale | None:
        """None when the server has no such kind that can be scaled. With `uid` it is asked anew when another was kept.

        ApiError, ConnectionError: it was not read, and it is asked again the next time; 404: there is no such object.
        ValueError: there can be none, or it cannot be read.
        """
        group = api_version.rpartition("/")[0]
        _check_parts(group, name)
        place = await self.place(group, kind)
        if place is None or not place.scalable:
            return None
        path = place.scale(namespace, name)
        now = self._clock.monotonic()
        until, scale = self._scales.get(path, (now, None))
        if scale is None or until <= now or uid not in ("", scale.metadata.uid):
            scale = codec.decode(await self._client.request("GET", path), Scale)
            self._scales[path] = now + SCALE_SECONDS, scale
        return scale

    @property
    def remembered(self) -> int:
        """How many kinds and scales."""
        return len(self._places) + len(self._scales)

    def forget_old(self) -> None:
        """Drop what would be read again anyway."""
        now = self._clock.monotonic()
        self._scales = {path: kept for path, kept in self._scales.items() if kept[0] > now}
        self._places = {kind: kept for kind, kept in self._places.items() if kept[0] > now}

    async def path(self, api_version: str, kind: str, namespace: str, name: str) -> str:
        """The path of an object's scale. Raises NoKind; ApiError 404 for a kind without scale, and whatever asking the
        server raises; ValueError for a name that can be no part of a path."""
        group = api_version.rpartition("/")[0]
        _check_parts(group, name)
        place = await self.place(group, kind)
        if place is None:
            raise NoKind(f'no matches for kind "{kind}" in group "{group}"')
        if not place.scalable:
            raise ApiError(NOT_FOUND, "NotFound", "the server could not find the requested resource")
        return place.scale(namespace, name)

    async def place(self, group: str, kind: str) -> Place | None:
        """The first version of the group counts in which the kind can be scaled, or else in which it is."""
        now = self._clock.monotonic()
        until, place = self._places.get((group, kind), (now, None))
        if until <= now:
            places = [place async for place in self._ask(group, kind)]
            place = next((place for place in places if place.scalable), places[0] if places else None)
            lasting = KINDS_SECONDS if place is not None and place.scalable else self._missing_seconds
            self._places[group, kind] = now + lasting, place
        return place

    async def _ask(self, group: str, kind: str) -> AsyncIterator[Place]:
        for root in await self._versions(group):
            kinds = codec.decode(await self._client.request("GET", root), _Kinds).resources or ()
            served = {kind.name for kind in kinds}
            for listed in kinds:
                if listed.kind == kind and "/" not in listed.name:
                    yield Place(root, listed.name, f"{listed.name}/scale" in served)

    async def _versions(self, group: str) -> tuple[str, ...]:
        if not group:
            return ("/api/v1",)
        try:
            found = codec.decode(await self._client.request("GET", f"/apis/{quote(group, safe='')}"), _Group)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return ()
            raise
        return tuple(f"/apis/{version.group_version}" for version in found.versions)


def _check_parts(*texts: str) -> None:
    for text in texts:
        if text in (".", "..") or "/" in text or "%" in text:
            raise ValueError(f"{text} can be no part of a path")
