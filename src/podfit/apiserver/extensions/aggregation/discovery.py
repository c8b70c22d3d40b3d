"""Discovery documents of aggregated group versions, in both forms."""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta.base import Document


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """A resource or subresource, as a backend lists it; Go writes an empty list as null."""

    name: str = ""
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: tuple[str, ...] | None = None
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None


class Listed(msgspec.Struct, frozen=True):
    """An APIResourceList."""

    kind: str
    resources: tuple[Entry, ...] | None = None


Lists = Mapping[str, Listed]
"""What each that is available lists, by the name of its APIService."""


def by_group(registered: Iterable[APIService]) -> dict[str, list[APIService]]:
    """The groups by their priority, and the versions of each by theirs."""
    found: dict[str, list[APIService]] = {}
    for api_service in sorted(registered, key=_rank):
        found.setdefault(api_service.spec.group, []).append(api_service)
    return found


def _rank(registered: APIService) -> tuple[int, str, int, str]:
    spec = registered.spec
    return -spec.group_priority_minimum, spec.group, -spec.version_priority, spec.version


def group(name: str, versions: list[APIService]) -> Document:
    listed = [
        {"groupVersion": f"{name}/{version.spec.version}", "version": version.spec.version} for version in versions
    ]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def aggregated(name: str, versions: list[APIService], lists: Lists) -> Document:
    """Everything of a group at once; of a version that does not answer it is only known that there is one."""
    return {"metadata": {"name": name}, "versions": [_version(version, lists) for version in versions]}


def _version(registered: APIService, lists: Lists) -> Document:
    listed = lists.get(registered.metadata.name)
    version = registered.spec.version
    if listed is None:
        return {"version": version, "freshness": "Stale"}
    entries = listed.resources or ()
    mains = [entry for entry in entries if "/" not in entry.name]
    return {"version": version, "resources": [_resource(main, entries) for main in mains], "freshness": "Current"}


def _resource(main: Entry, entries: Iterable[Entry]) -> Document:
    entry: Document = {
        "resource": main.name,
        "responseKind": _kind(main),
        "singularResource": main.singular_name,
        "scope": "Namespaced" if main.namespaced else "Cluster",
        "verbs": main.verbs or (),
    }
    words = (("shortNames", main.short_names), ("categories", main.categories))
    entry |= {key: given for key, given in words if given}
    subresources = [
        {"subresource": entry.name.partition("/")[2], "responseKind": _kind(entry), "verbs": entry.verbs or ()}
        for entry in entries
        if entry.name.startswith(f"{main.name}/")
    ]
    return entry | ({"subresources": subresources} if subresources else {})


def _kind(entry: Entry) -> dict[str, str]:
    return {"group": entry.group, "version": entry.version, "kind": entry.kind}
