"""Replica counts of objects of any kind, by their scale subresource."""

import msgspec

from podfit.api.autoscaling.v1.types import Scale
from podfit.api.meta import codec
from podfit.api.meta.v1.types import OwnerReference
from podfit.client.rest import Client
from podfit.core.errors import not_found


class _Kind(msgspec.Struct, frozen=True):
    name: str
    kind: str


class _Kinds(msgspec.Struct, frozen=True):
    resources: tuple[_Kind, ...] | None = ()  # Go writes an empty list as null


class Unscalable(Exception):
    """A kind without a scale; the message is upstream's."""


async def scale_of(client: Client, owner: OwnerReference, namespace: str) -> int:
    """Raises ApiError 404 when there is no such object, or another of its name; Unscalable for a kind without scale."""
    group, _, version = owner.api_version.rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    kinds = msgspec.json.decode(await client.request("GET", root), type=_Kinds).resources or ()
    resource = next(
        (scalable.name for scalable in kinds if scalable.kind == owner.kind and "/" not in scalable.name), ""
    )
    if not any(scalable.name == f"{resource}/scale" for scalable in kinds):
        if not resource:
            raise not_found(owner.kind, owner.name, group=group)
        named = f"{resource}.{group}" if group else resource
        raise Unscalable(f"{named} does not implement the scale subresource")
    path = f"{root}/namespaces/{namespace}/{resource}/{owner.name}/scale"
    scale = codec.decode(await client.request("GET", path), Scale)
    if scale.metadata.uid != owner.uid:
        raise not_found(resource, owner.name, group=group)
    return scale.spec.replicas
