"""scheduling.k8s.io/v1: priority classes."""

from podfit.api.base import always, Object
from podfit.api.meta import ObjectMeta


class PriorityClass(Object):
    kind: str = always("PriorityClass")
    api_version: str = always("scheduling.k8s.io/v1")
    metadata: ObjectMeta = always(ObjectMeta())
    description: str = ""
    global_default: bool = False
    preemption_policy: str = ""
    value: int = 0
