"""Selectors and owners of other controllers through their scale subresource.

Which kinds have one is asked of the server and remembered for 5 minutes; a scale is remembered for 10.
"""

from collections.abc import AsyncIterator
from typing import TypeAlias
from urllib.parse import quote

import msgspec

from podfit.api.autoscaling.v1.types import Scale
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

KINDS_SECONDS, SCALE_SECONDS = 300.0, 600.0
NOT_FOUND = 404
Template: TypeAlias = str
"""Of the path of a scale, with the places `namespace` and `name`."""


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
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._templates: dict[tuple[str, str], tuple[float, Template]] = {}
        self._scales: dict[str, tuple[float, Scale]] = {}

    async def find(self, api_version: str, kind: str, namespace: str, name: str, uid: str = "") -> Scale | None:
        """None when the server has no such kind that can be scaled. With `uid` it is asked anew when another was kept.

        ApiError, ConnectionError: it was not read, and it is asked again the next time; 404: there is no such object.
        ValueError: there can be none, or it cannot be read.
        """
        group = api_version.rpartition("/")[0]
        for text in (group, name):
            if text in (".", "..") or "/" in text or "%" in text:
                raise ValueError(f"{text} can be no part of a path")
        template = await self._template(group, kind)
        if not template:
            return None
        path = template.format(namespace=namespace, name=quote(name, safe=""))
        now = self._clock.monotonic()
        until, scale = self._scales.get(path, (now, None))
        if scale is None or until <= now or uid not in ("", scale.metadata.uid):
            scale = codec.decode(await self._client.request("GET", path), Scale)
            self._scales[path] = now + SCALE_SECONDS, scale
        return scale

    @property
    def remembered(self) -> int:
        """How many kinds and scales."""
        return len(self._templates) + len(self._scales)

    def forget_old(self) -> None:
        """Drop what would be read again anyway."""
        now = self._clock.monotonic()
        self._scales = {path: kept for path, kept in self._scales.items() if kept[0] > now}
        self._templates = {kind: kept for kind, kept in self._templates.items() if kept[0] > now}

    async def _template(self, group: str, kind: str) -> Template:
        """Empty when there is none; the first version of the group that has it counts."""
        now = self._clock.monotonic()
        until, template = self._templates.get((group, kind), (now, ""))
        if until <= now:
            template = await anext(self._ask(group, kind), "")
            self._templates[group, kind] = now + KINDS_SECONDS, template
        return template

    async def _ask(self, group: str, kind: str) -> AsyncIterator[Template]:
        for place in await self._versions(group):
            kinds = codec.decode(await self._client.request("GET", place), _Kinds).resources or ()
            served = {kind.name for kind in kinds}
            for listed in kinds:
                if listed.kind == kind and f"{listed.name}/scale" in served:
                    yield f"{place}/namespaces/{{namespace}}/{listed.name}/{{name}}/scale"

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
