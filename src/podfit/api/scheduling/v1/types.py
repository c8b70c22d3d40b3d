"""scheduling.k8s.io/v1: priority classes."""

from podfit.api.meta.base import Object, always
from podfit.api.meta.v1.types import ObjectMeta


class PriorityClass(Object):
    kind: str = always(default="PriorityClass")
    api_version: str = always(default="scheduling.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    description: str = ""
    global_default: bool = False
    preemption_policy: str = ""
    value: int = 0
