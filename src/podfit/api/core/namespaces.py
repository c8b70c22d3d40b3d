"""Namespaces."""

from typing import Annotated

from podfit.api.base import always, keyed, Object, Struct, Time
from podfit.api.meta import ObjectMeta


class NamespaceSpec(Struct):
    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Struct):
    type: str = always("")
    last_transition_time: Time | None = always(None)
    message: str = ""
    reason: str = ""
    status: str = always("")


class NamespaceStatus(Struct):
    conditions: Annotated[tuple[NamespaceCondition, ...], keyed("type")] = ()
    phase: str = ""


class Namespace(Object):
    kind: str = always("Namespace")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: NamespaceSpec = always(NamespaceSpec())
    status: NamespaceStatus = always(NamespaceStatus())
