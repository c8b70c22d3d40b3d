"""The kinds that an API server serves, by discovery, so that custom resources are among them."""

import logging
from typing import Any

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.client.resource import Resource
from podfit.client.resource import dynamic as by_name
from podfit.client.rest import Client
from podfit.core.errors import ApiError

log = logging.getLogger(__name__)
UNAVAILABLE = 503


class _Kind(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] | None = ()  # Go writes an empty list as null


class _Kinds(msgspec.Struct, frozen=True):
    resources: tuple[_Kind, ...] | None = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    versions: tuple[_Version, ...]
    preferred_version: _Version


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


class Served(msgspec.Struct, frozen=True):
    """A kind as the server names it."""

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        return self.info().path(namespace, name)

    def info(self) -> ResourceInfo:
        return by_name(self.group, self.version, self.resource, namespaced=self.namespaced).info

    def decoded_as(self, kind: type[Any]) -> Resource[Any]:
        """For the client: objects of this kind, read as `kind`."""
        return Resource(self.info(), kind)


class Inventory(msgspec.Struct, frozen=True):
    """`silent` are groups and versions that gave no answer: another component serves them, and is away."""

    kinds: tuple[Served, ...]
    silent: frozenset[tuple[str, str]] = frozenset()


async def served(client: Client, *verbs: str) -> Inventory:
    """Every kind that has these verbs, in each group's preferred version."""
    versions = ["v1"]
    groups = msgspec.json.decode(await client.request("GET", "/apis"), type=_Groups).groups
    versions += [group.preferred_version.group_version for group in groups]
    found: list[Served] = []
    silent = set()
    for group_version in versions:
        group, _, version = group_version.rpartition("/")
        try:
            text = await client.request("GET", f"/apis/{group_version}" if group else f"/api/{group_version}")
            resources = msgspec.json.decode(text, type=_Kinds).resources or ()
        except (ApiError, msgspec.DecodeError) as error:
            away = isinstance(error, ApiError) and error.code == UNAVAILABLE  # as each backend is at its start
            level = logging.INFO if away else logging.WARNING
            log.log(level, "not known which kinds there are version=%s error=%s", group_version, error)
            silent.add((group, version))
            continue
        kinds = (kind for kind in resources if "/" not in kind.name and set(verbs) <= set(kind.verbs or ()))
        found += (Served(group, version, kind.name, kind.kind, kind.namespaced) for kind in kinds)
    return Inventory(tuple(found), frozenset(silent))
