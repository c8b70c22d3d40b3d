"""Objects that an autoscaler of pods or nodes needs in a cluster: CRDs, its processes' RBAC, the recommender's own API.

They come with the package. A definition that somebody else has installed stays as it is; one of ours is brought up to
date, which its annotation says.
"""

import asyncio
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec
import yaml

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.codec import convert
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podfit.client.rest import APPLY_PATCH, Client
from podfit.core.errors import ApiError


class Shipped(msgspec.Struct, frozen=True):
    """Manifests of the package; `definition` is the one whose stamp says that all of it is there."""

    manifests: tuple[str, ...]
    definition: str


VPA = Shipped(
    ("verticalpodautoscalers.yaml", "vpa-roles.yaml", "podrecommendations.yaml"),
    "verticalpodautoscalers.autoscaling.k8s.io",
)
CLUSTER_AUTOSCALER = Shipped(("cluster-autoscaler.yaml",), "capacitybuffers.autoscaling.x-k8s.io")
STAMP = "podfit.dev/manifests"
MANAGER = "podfit-vpa"
NOT_FOUND = 404
_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(CustomResourceDefinition, ServiceAccount, ClusterRole, ClusterRoleBinding, Role, RoleBinding),
        *(Service, APIService),
    )
}


async def install(client: Client, shipped: Shipped = VPA) -> None:
    """Returns when its kind is served. Raises ApiError or ConnectionError; `client` is an administrator's."""
    stamp = await asyncio.to_thread(_stamp, shipped)
    try:
        there = await client.get(CustomResourceDefinition, shipped.definition)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        known: str | None = ""
    else:
        known = there.metadata.annotations.get(STAMP)
    if known != stamp:
        for document in await asyncio.to_thread(lambda: list(_documents(shipped, stamp))):
            if known is not None or document["kind"] != CustomResourceDefinition.__name__:
                await _apply(client, document)
    await _served(client, shipped.definition)


def _texts(shipped: Shipped) -> list[str]:
    return [(files("podfit.api") / "manifests" / name).read_text() for name in shipped.manifests]


def _stamp(shipped: Shipped) -> str:
    return hashlib.sha256("".join(_texts(shipped)).encode()).hexdigest()[:16]


def _documents(shipped: Shipped, stamp: str) -> Iterator[dict[str, Any]]:
    """The definitions come last: their stamp says that all of it is there."""
    found = [document for text in _texts(shipped) for document in yaml.safe_load_all(text)]
    for document in sorted(found, key=lambda document: document["kind"] == CustomResourceDefinition.__name__):
        document["metadata"].setdefault("annotations", {})[STAMP] = stamp
        yield document


async def _apply(client: Client, document: dict[str, Any]) -> None:
    kind, meta = _KINDS[document["kind"]], document["metadata"]
    convert(document, kind)  # what we ship is right
    body = msgspec.json.encode(document)
    namespace = meta.get("namespace", "")
    await client.patch(kind, meta["name"], namespace, body, content_type=APPLY_PATCH, field_manager=MANAGER, force=True)


async def _served(client: Client, definition: str) -> None:
    """Wait until the definition is established."""
    fields = f"metadata.name={definition}"
    found = await client.list(CustomResourceDefinition, fields=fields)
    if any(map(_established, found.items)):
        return
    async for event in client.watch(
        CustomResourceDefinition, resource_version=found.resource_version, fields=fields, bookmarks=False
    ):
        if _established(event.object):
            return


def _established(definition: CustomResourceDefinition) -> bool:
    return any(
        condition.type == "Established" and condition.status == "True"
        for condition in definition.status.conditions or ()
    )
