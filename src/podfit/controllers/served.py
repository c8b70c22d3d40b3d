"""Which kinds an API server has, asked of the server itself, so that custom resources are among them."""

from dataclasses import dataclass
from typing import Any

import msgspec

from podfit.api.registry import ResourceInfo
from podfit.client.resource import Resource
from podfit.client.resource import dynamic as by_name
from podfit.client.rest import Client


class _Kind(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()


class _Kinds(msgspec.Struct, frozen=True):
    resources: tuple[_Kind, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    versions: tuple[_Version, ...]
    preferred_version: _Version


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Served:
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


async def served(client: Client, *verbs: str) -> tuple[Served, ...]:
    """Every kind that has these verbs, in each group's preferred version."""
    versions = ["v1"]
    groups = msgspec.json.decode(await client.request("GET", "/apis"), type=_Groups).groups
    versions += [each.preferred_version.group_version for each in groups]
    found: list[Served] = []
    for each in versions:
        group, _, version = each.rpartition("/")
        text = await client.request("GET", f"/apis/{each}" if group else f"/api/{each}")
        kinds = (kind for kind in msgspec.json.decode(text, type=_Kinds).resources
                 if "/" not in kind.name and set(verbs) <= set(kind.verbs))  # fmt: skip
        found += (Served(group, version, kind.name, kind.kind, kind.namespaced) for kind in kinds)
    return tuple(found)
