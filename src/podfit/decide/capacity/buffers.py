"""CapacityBuffers: headroom that is asked for as pods of a template, which exist only in the autoscaler's sums.

`autoscaling.x-k8s.io/v1beta1`, the strategy `buffer.x-k8s.io/active-capacity`: so many replicas of the template, or a
percentage of a workload's replicas, as far as `limits` go. Nobody gives way for them: what they stand for is free.
"""

import math

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import ZERO
from podfit.decide.capacity.drain import SAFE_TO_EVICT
from podfit.decide.pod.requests import pod_requests

ACTIVE = "buffer.x-k8s.io/active-capacity"
MOST_CHUNKS = 1000


class TemplateRef(msgspec.Struct, frozen=True):
    name: str = ""


class ScalableRef(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    name: str = ""
    api_group: str = ""


class BufferSpec(msgspec.Struct, frozen=True, rename="camel"):
    provisioning_strategy: str = ACTIVE
    pod_template_ref: TemplateRef | None = None
    scalable_ref: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: ResourceList = msgspec.field(default_factory=dict)


class CapacityBuffer(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: BufferSpec = BufferSpec()


class Chunks(msgspec.Struct, frozen=True):
    """The pods that a buffer stands for; `problem` says why there are none, or fewer than are asked for."""

    pods: tuple[Pod, ...] = ()
    problem: str = ""


def chunks(buffer: CapacityBuffer, template: PodTemplateSpec | None, replicas: int | None) -> Chunks:
    """`template` is what its reference leads to, `replicas` how many the workload has; None where it leads nowhere."""
    spec = buffer.spec
    if spec.provisioning_strategy not in ("", ACTIVE):
        return Chunks(problem=f"the strategy {spec.provisioning_strategy[:100]} is not known")
    if (spec.pod_template_ref is None) is (spec.scalable_ref is None):
        return Chunks(problem="it names one of podTemplateRef and scalableRef")
    if template is None:
        return Chunks(problem="what it refers to is not there")
    pod = _pod(buffer, template)
    wanted = _wanted(spec, replicas, pod_requests(pod))
    if wanted is None:
        return Chunks(problem="it says no replicas, percentage or limits")
    number = max(min(wanted, MOST_CHUNKS), 0)
    problem = f"it asks for {wanted} chunks, and {MOST_CHUNKS} count" if wanted > MOST_CHUNKS else ""
    return Chunks(tuple(_numbered(pod, place) for place in range(number)), problem)


def _wanted(spec: BufferSpec, replicas: int | None, requests: ResourceList) -> int | None:
    """The larger of replicas and percentage, at most as many as fit the limits; None where none of them is said."""
    asked = [spec.replicas] if spec.replicas is not None else []
    if spec.percentage is not None and replicas is not None:
        asked.append(math.ceil(replicas * spec.percentage / 100))
    fitting = _fitting(spec.limits, requests)
    if not asked:
        return fitting
    return max(asked) if fitting is None else min(max(asked), fitting)


def _fitting(limits: ResourceList, requests: ResourceList) -> int | None:
    counts = [limit.nano // requests[name].nano for name, limit in limits.items() if requests.get(name, ZERO) > ZERO]
    return min(counts, default=None)


def _pod(buffer: CapacityBuffer, template: PodTemplateSpec) -> Pod:
    meta = buffer.metadata
    made = ObjectMeta(
        name=f"capacity-buffer-{meta.name}",
        namespace=meta.namespace,
        uid=f"buffer-{meta.uid}",
        labels=template.metadata.labels,
        annotations={SAFE_TO_EVICT: "true"},
    )
    return Pod(metadata=made, spec=replace(template.spec, node_name=""))


def _numbered(pod: Pod, place: int) -> Pod:
    meta = replace(pod.metadata, name=f"{pod.metadata.name}-{place}", uid=f"{pod.metadata.uid}-{place}")
    return replace(pod, metadata=meta)
