"""metrics.k8s.io/v1beta1: what pods and nodes used lately. Nothing of it is stored."""

from msgspec import field

from podfit.api.meta.base import Object, ResourceList, Struct, Time, always
from podfit.api.meta.v1.types import ObjectMeta

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"


class ContainerMetrics(Struct):
    name: str = always(default="")
    usage: ResourceList = field(default_factory=dict)


class PodMetrics(Object):
    """`window` is a Go duration: CPU is the mean over it, and it ends at `timestamp`."""

    kind: str = always(default="PodMetrics")
    api_version: str = always(default=GROUP_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    timestamp: Time | None = always(default=None)
    window: str = always(default="")
    containers: tuple[ContainerMetrics, ...] = always(default=())


class NodeMetrics(Object):
    kind: str = always(default="NodeMetrics")
    api_version: str = always(default=GROUP_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    timestamp: Time | None = always(default=None)
    window: str = always(default="")
    usage: ResourceList = field(default_factory=dict)
