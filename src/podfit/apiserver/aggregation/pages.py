"""What discovery says of group versions that others serve, in both of its forms."""

from collections.abc import Iterable, Mapping
from typing import Any

from podfit.api.apiregistration import APIService

Lists = Mapping[str, dict[str, Any]]
"""The APIResourceList of each that is available, by the name of its APIService."""


def by_group(registered: Iterable[APIService]) -> dict[str, list[APIService]]:
    """The groups by their priority, and the versions of each by theirs."""
    found: dict[str, list[APIService]] = {}
    for each in sorted(registered, key=_rank):
        found.setdefault(each.spec.group, []).append(each)
    return found


def _rank(registered: APIService) -> tuple[int, str, int, str]:
    spec = registered.spec
    return -spec.group_priority_minimum, spec.group, -spec.version_priority, spec.version


def group(name: str, versions: list[APIService]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{each.spec.version}", "version": each.spec.version} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def aggregated(name: str, versions: list[APIService], lists: Lists) -> dict[str, Any]:
    """Everything of a group at once; of a version that does not answer it is only known that there is one."""
    return {"metadata": {"name": name}, "versions": [_version(each, lists) for each in versions]}


def _version(registered: APIService, lists: Lists) -> dict[str, Any]:
    listed = lists.get(registered.metadata.name)
    version = registered.spec.version
    if listed is None:
        return {"version": version, "freshness": "Stale"}
    entries = [each for each in listed.get("resources", ()) if isinstance(each, dict)]
    mains = [each for each in entries if "/" not in each.get("name", "")]
    return {"version": version, "resources": [_resource(each, entries) for each in mains], "freshness": "Current"}


def _resource(main: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    name = main.get("name", "")
    entry: dict[str, Any] = {
        "resource": name, "responseKind": _kind(main), "singularResource": main.get("singularName", ""),
        "scope": "Namespaced" if main.get("namespaced") else "Cluster", "verbs": main.get("verbs", []),
    }  # fmt: skip
    entry |= {key: main[key] for key in ("shortNames", "categories") if main.get(key)}
    subresources = [
        {"subresource": each["name"].partition("/")[2], "responseKind": _kind(each), "verbs": each.get("verbs", [])}
        for each in entries
        if each.get("name", "").startswith(f"{name}/")
    ]
    return entry | ({"subresources": subresources} if subresources else {})


def _kind(entry: dict[str, Any]) -> dict[str, str]:
    return {"group": entry.get("group", ""), "version": entry.get("version", ""), "kind": entry.get("kind", "")}
