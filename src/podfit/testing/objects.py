"""Objects of any kind that a cluster serves, as JSON has them."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeAlias

import yaml

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import resources
from podfit.client.resource import dynamic
from podfit.client.rest import APPLY_PATCH, Client
from podfit.core.errors import ApiError

Document: TypeAlias = dict[str, Any]
Manifest: TypeAlias = Mapping[str, Any] | str | Path
MOST_SHOWN = 200
TOKEN_SECONDS = 10 * 365 * 24 * 3600


class Objects:
    """`settle` returns when the cluster is at rest: a definition just applied may not be served before."""

    def __init__(self, client: Client, settle: Callable[[], Awaitable[None]]) -> None:
        self._client, self._settle = client, settle

    async def apply(self, document: Document, namespace: str) -> None:
        """Raises ApiError, LookupError for a kind that is not served, ValueError for what is no object with a name."""
        meta = document.get("metadata") or {}
        api_version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        if not (api_version and kind and meta.get("name")):
            raise ValueError(f"a manifest has apiVersion, kind and metadata.name; this one has {shortened(document)}")
        info = await self._resource(api_version, kind)
        path = info.path(meta.get("namespace", namespace) if info.namespaced else "", meta["name"])
        query = {"fieldManager": "podfit-testing", "force": "true"}
        body = json.dumps(document).encode()
        await self._client.request("PATCH", path, body, query=query, content_type=APPLY_PATCH)

    async def get(self, api_version: str, kind: str, name: str, namespace: str) -> Document:
        info = await self._resource(api_version, kind)
        body = await self._client.request("GET", info.path(namespace if info.namespaced else "", name))
        found: Document = json.loads(body)
        return found

    async def delete(self, api_version: str, kind: str, name: str, namespace: str) -> None:
        info = await self._resource(api_version, kind)
        await self._client.request("DELETE", info.path(namespace if info.namespaced else "", name))

    async def token(self, account: str, namespace: str) -> str:
        """One for a service account, good for ten years of the cluster's time."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        answer = json.loads(await self._client.request("POST", path, json.dumps(request).encode()))
        return str(answer["status"]["token"])

    async def _resource(self, api_version: str, kind: str) -> ResourceInfo:
        """The resource of a built-in kind, or of one that this cluster declares, as its discovery tells."""
        group, _, version = api_version.rpartition("/")
        for resource in resources():
            if (resource.group, resource.version, resource.kind) == (group, version, kind):
                return resource
        await self._settle()
        try:
            told = json.loads(await self._client.request("GET", f"/apis/{group}/{version}"))["resources"]
        except ApiError as error:
            if error.code != 404:
                raise
            told = []
        for resource in told:
            if resource["kind"] == kind and "/" not in resource["name"]:
                return dynamic(group, version, resource["name"], namespaced=resource["namespaced"]).info
        known = (resource for resource in resources() if resource.kind == kind)
        served = [f"{resource.group}/{resource.version}".lstrip("/") for resource in known]
        hint = f"; it serves {kind} in {', '.join(served)}" if served else ""
        raise LookupError(f"this cluster does not serve {api_version} {kind}{hint}")


def documents(manifest: Manifest) -> list[Document]:
    """A text without a line break is a file's path, unless it is JSON. A text or file may have several documents, and a
    document of kind List several objects. Raises ValueError for what is no manifest, OSError for a file."""
    if isinstance(manifest, Mapping):
        return list(_items(dict(manifest)))
    if not str(manifest).strip():
        raise ValueError("a manifest is a mapping, a YAML text or a file, and not empty")
    is_text = isinstance(manifest, str) and ("\n" in manifest or manifest.lstrip().startswith("{"))
    text = dedent(str(manifest)) if is_text else Path(manifest).read_text()
    return [item for document in yaml.safe_load_all(text) if document for item in _items(document)]


def _items(document: Any) -> Iterator[Document]:
    if not isinstance(document, dict):
        raise ValueError(f"a manifest is a mapping, not {shortened(document)}")
    if document.get("kind") == "List":
        for item in document.get("items") or ():
            yield from _items(item)
    else:
        yield document


def shortened(document: Any) -> str:
    """Enough of it to know it by."""
    text = json.dumps(document, default=str)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
