"""`Resource`: the paths of a kind, and the type its objects decode to.

Built-in kinds are given by their Struct. Custom resources have no Struct and travel as dicts; they are named by
`dynamic`, and everything else works the same.
"""

from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo

T = TypeVar("T")
Typed = TypeVar("Typed", bound=Object)
Document: TypeAlias = dict[str, Any]


class Resource(msgspec.Struct, Generic[T], frozen=True):
    info: ResourceInfo
    type: type[T]


Kind: TypeAlias = type[T] | Resource[T]


def dynamic(group: str, version: str, resource: str, *, namespaced: bool = True) -> Resource[Document]:
    """A kind whose objects stay dicts."""
    info = ResourceInfo(
        type=Object, group=group, version=version, resource=resource, singular="", namespaced=namespaced
    )
    return Resource(info, dict)


def known(
    kind: type[Typed], resource: str, *, namespaced: bool = True, group: str = "", version: str = "v1"
) -> Resource[Typed]:
    """A built-in kind by its path, for a program that has no use for the whole table of kinds."""
    info = ResourceInfo(type=kind, group=group, version=version, resource=resource, singular="", namespaced=namespaced)
    return Resource(info, kind)


def resource_of(kind: Kind[T]) -> Resource[T]:
    if isinstance(kind, Resource):
        return kind
    from podfit.api.registry import info_for  # the whole table takes a tenth of a second to load

    return Resource(info_for(kind), kind)  # type: ignore[arg-type]  # a Struct's type is looked up, or KeyError


def identify(obj: Any) -> tuple[str, str]:
    """Namespace and name."""
    if isinstance(obj, dict):
        metadata = obj.get("metadata", {})
        return metadata.get("namespace", ""), metadata.get("name", "")
    return obj.metadata.namespace, obj.metadata.name


def uid_of(obj: Any) -> str:
    return str(obj.get("metadata", {}).get("uid", "") if isinstance(obj, dict) else obj.metadata.uid)


def version_of(obj: Any) -> str:
    """The resourceVersion."""
    if isinstance(obj, dict):
        return str(obj.get("metadata", {}).get("resourceVersion", ""))
    return str(obj.metadata.resource_version)
