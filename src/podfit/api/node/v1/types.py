"""node.k8s.io/v1: ways of running a pod that a node offers, by name."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.pods.affinity import Toleration
from podfit.api.meta.base import ATOMIC, Object, ResourceList, Struct, always
from podfit.api.meta.v1.types import ObjectMeta


class Overhead(Struct):
    pod_fixed: ResourceList = field(default_factory=dict)


class Scheduling(Struct):
    node_selector: Annotated[dict[str, str], ATOMIC] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Object):
    kind: str = always(default="RuntimeClass")
    api_version: str = always(default="node.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    handler: str = always(default="")
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
