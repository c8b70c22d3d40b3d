"""Namespaces."""

from typing import Annotated

from podfit.api.meta.base import Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta


class NamespaceSpec(Struct):
    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Struct):
    type: str = always(default="")
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")


class NamespaceStatus(Struct):
    conditions: Annotated[tuple[NamespaceCondition, ...], keyed("type")] = ()
    phase: str = ""


class Namespace(Object):
    kind: str = always(default="Namespace")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: NamespaceSpec = always(default=NamespaceSpec())
    status: NamespaceStatus = always(default=NamespaceStatus())
