"""ComponentStatus: how a part of the control plane is; it is observed when it is asked for, and never stored."""

from typing import Annotated

from podfit.api.meta.base import Object, Struct, always, keyed
from podfit.api.meta.v1.types import ObjectMeta

HEALTHY = "Healthy"


class ComponentCondition(Struct):
    """`status` is "True", "False" or "Unknown"."""

    type: str = always(default="")
    status: str = always(default="")
    message: str = ""
    error: str = ""


class ComponentStatus(Object):
    kind: str = always(default="ComponentStatus")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    conditions: Annotated[tuple[ComponentCondition, ...], keyed("type")] = ()
