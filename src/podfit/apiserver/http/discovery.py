"""Discovery: API groups and resources, unaggregated and aggregated, and the version.

Everything is a function of the kinds that are served, which grow and shrink with the cluster's own definitions.
"""

import hashlib
import platform
import sys
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

import podfit
from podfit.api.meta.base import Document
from podfit.api.meta.resource_info import ResourceInfo, Subresource

MAJOR, MINOR = "1", "36"
GIT_VERSION = f"v{MAJOR}.{MINOR}.2+podfit.{podfit.__version__}"
OPENID, JWKS = "/.well-known/openid-configuration", "/openid/v1/jwks"
PAGES = ("/healthz", "/livez", "/metrics", OPENID, "/openapi/v2", "/openapi/v3", JWKS, "/readyz", "/version")
_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
AGGREGATED = "apidiscovery.k8s.io"
Infos: TypeAlias = tuple[ResourceInfo, ...]


def version() -> dict[str, str]:
    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"Python {platform.python_version()}",
        "platform": f"{sys.platform}/{_architecture()}",
    }


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@lru_cache(maxsize=4)
def groups(infos: Infos) -> dict[str, tuple[str, ...]]:
    """Versions by group, in the order in which clients look for a name that several groups have."""
    found: dict[str, list[str]] = {name: [] for name in _ORDER if any(info.group == name for info in infos)}
    for info in infos:
        versions = found.setdefault(info.group, [])
        if info.version not in versions:
            versions.append(info.version)
    return {name: tuple(versions) for name, versions in found.items()}


def api_versions(infos: Infos, address: str) -> Document:
    by_address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": list(groups(infos)[""]), "serverAddressByClientCIDRs": by_address}


def api_groups(infos: Infos) -> Document:
    found = [_group(infos, name) for name in groups(infos) if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def api_group(infos: Infos, name: str) -> Document | None:
    known = name and name in groups(infos)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(infos, name)} if known else None


def _group(infos: Infos, name: str) -> Document:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in groups(infos)[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(infos: Infos, group: str, version: str) -> Document | None:
    """The resources of a group version, each followed by its subresources."""
    if version not in groups(infos).get(group, ()):
        return None
    listed = [entry for info in _of(infos, group, version) for entry in _entries(info)]
    name = f"{group}/{version}" if group else version
    head = {"kind": "APIResourceList", "groupVersion": name}
    return (head | {"apiVersion": "v1"} if group else head) | {
        "resources": sorted(listed, key=lambda resource: resource["name"])
    }


def _of(infos: Infos, group: str, version: str) -> Iterable[ResourceInfo]:
    return (info for info in infos if (info.group, info.version) == (group, version))


def _entries(info: ResourceInfo) -> Iterable[Document]:
    main: Document = {
        "name": info.resource,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": sorted(info.verbs),
    }
    if info.short_names:
        main["shortNames"] = list(info.short_names)
    if info.categories:
        main["categories"] = list(info.categories)
    if info.stored:
        main["storageVersionHash"] = _storage_hash(info)
    yield main
    for sub in info.subresources:
        yield _sub(info, sub)


def _storage_hash(info: ResourceInfo) -> str:
    """The hash of the version in which objects are stored, so that a client notices when it becomes another."""
    home = info.home
    stored = f"{home.group}/{home.stored_as or home.version}/{home.kind}"
    return b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _sub(info: ResourceInfo, sub: Subresource) -> Document:
    entry: Document = {
        "name": f"{info.resource}/{sub.name}",
        "singularName": "",
        "namespaced": info.namespaced,
        "kind": sub.kind or info.kind,
        "verbs": sorted(sub.verbs),
    }
    return entry | ({"group": sub.group, "version": sub.version} if sub.group else {})


def aggregated(infos: Infos, *, core: bool) -> Document:
    """Everything at once, as kubectl asks first."""
    names = [name for name in groups(infos) if (not name) is core]
    items = [
        {"metadata": {"name": name}, "versions": [_version(infos, name, group) for group in groups(infos)[name]]}
        if name
        else {"metadata": {}, "versions": [_version(infos, name, group) for group in groups(infos)[name]]}
        for name in names
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/v2", "metadata": {}, "items": items}


def _version(infos: Infos, group: str, version: str) -> Document:
    listed = sorted(_of(infos, group, version), key=lambda info: info.resource)
    return {"version": version, "resources": [_aggregated(info) for info in listed], "freshness": "Current"}


def _aggregated(info: ResourceInfo) -> Document:
    entry: Document = {
        "resource": info.resource,
        "responseKind": _kind(info, None),
        "singularResource": info.singular,
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "verbs": sorted(info.verbs),
    }
    if info.short_names:
        entry["shortNames"] = list(info.short_names)
    if info.categories:
        entry["categories"] = list(info.categories)
    if info.subresources:
        entry["subresources"] = [
            {"subresource": sub.name, "responseKind": _kind(info, sub), "verbs": sorted(sub.verbs)}
            for sub in sorted(info.subresources, key=lambda subresource: subresource.name)
        ]
    return entry


def _kind(info: ResourceInfo, sub: Subresource | None) -> dict[str, str]:
    """Group and version are said only where they are not those of the document's part."""
    if sub is not None and sub.kind:
        return {"group": sub.group, "version": sub.version, "kind": sub.kind}
    return {"group": "", "version": "", "kind": info.kind}


def root_paths(infos: Infos) -> dict[str, list[str]]:
    """The paths of this server, which its root lists."""
    named = {name: versions for name, versions in groups(infos).items() if name}
    versions = [f"/apis/{name}/{version}" for name, listed in named.items() for version in listed]
    return {"paths": sorted(["/api", "/api/v1", "/apis", *(f"/apis/{name}" for name in named), *versions, *PAGES])}


def openid(issuer: str, algorithm: str, address: str) -> Document:
    """Where the keys are that check service account tokens."""
    place = address.removeprefix("https://")
    return {
        "issuer": issuer,
        "jwks_uri": f"https://{place}{JWKS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [algorithm],
    }
