"""PodRecommendation: a pod in, sizes of its containers out. It is created, answered, and stored nowhere."""

from msgspec import field

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object, ResourceList, Struct, always
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import Quantity

GROUP, VERSION = "recommender.podfit.dev", "v1alpha1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
RESOURCE, KIND = "podrecommendations", "PodRecommendation"


class PodRecommendationSpec(Struct):
    """`pod` need not exist: its labels and its controller say which VPA it would have."""

    pod: Pod = always(default=Pod())


class ContainerRecommendation(Struct):
    """`confidence` is 1 after a day of samples each minute. `source` is `usage`, or `status` where a resource has no
    samples and keeps what the VPA's status said before. `reasons` say what was done to the estimate.
    """

    name: str = always(default="")
    target: ResourceList = field(default_factory=dict)
    lower_bound: ResourceList = field(default_factory=dict)
    upper_bound: ResourceList = field(default_factory=dict)
    source: str = always(default="")
    confidence: Quantity | None = None
    reasons: tuple[str, ...] = ()


class PodRecommendationStatus(Struct):
    """`vpa` is the one that controls the pod; empty, with `message`, when none does. `message` also says to which slice
    of the VPA's pods it belongs. `pod` has the sizes of one that is sized as a whole. `initial` is what containers of
    the same image and name used before in the same workload, in a namespace that asks for initial resources.
    """

    vpa: str = always(default="")
    message: str = ""
    containers: tuple[ContainerRecommendation, ...] = always(default=())
    pod: ContainerRecommendation | None = None
    initial: tuple[ContainerRecommendation, ...] = ()


class PodRecommendation(Object):
    kind: str = always(default=KIND)
    api_version: str = always(default=GROUP_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PodRecommendationSpec = always(default=PodRecommendationSpec())
    status: PodRecommendationStatus = always(default=PodRecommendationStatus())
