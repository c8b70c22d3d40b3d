"""Strategies of namespaces and CustomResourceDefinitions: deletion waits until their contents are gone."""

from podfit.api.meta.v1.types import ObjectMeta, Preconditions
from podfit.api.registry import ResourceInfo
from podfit.core.errors import conflict


def check_before_contents(info: ResourceInfo, meta: ObjectMeta, wanted: Preconditions) -> None:
    """Looked at by rules of their own, with other words. Raises 409."""
    for name, asked, known in (
        ("UID", wanted.uid, meta.uid),
        ("ResourceVersion", wanted.resource_version, meta.resource_version),
    ):
        if asked is not None and asked != known:
            text = f"Precondition failed: {name} in precondition: {asked}, {name} in object meta: {known}"
            raise conflict(info.resource, meta.name, text, group=info.group)
