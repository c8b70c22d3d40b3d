"""Reads VerticalPodAutoscalers where their CRD is installed, and which of them each pod is controlled by."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from podfit.answers.facts.workloads import WorkloadReader
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.client.controlling import Controlling
from podfit.client.rest import Client
from podfit.client.targets import Targets, Unsupported
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.core.selectors import Selector

NOT_FOUND = 404


class EstimateStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One step of the estimate of a target: its value after it."""

    container: str
    resource: str
    step: str
    value: str
    because: str


class Vpas(msgspec.Struct, frozen=True):
    """`state` says whether there are any: served, absent (no CRD) or unread. `by_pod` has by a pod's UID the VPA that
    controls it.
    """

    state: Literal["served", "absent", "unread"] = "absent"
    by_pod: Mapping[str, VerticalPodAutoscaler] = msgspec.field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def of(self, pod: Pod) -> VerticalPodAutoscaler | None:
        return self.by_pod.get(pod.metadata.uid)


async def read_vpas(client: Client, namespace: str, pods: Sequence[Pod]) -> Vpas:
    """The VPAs of these pods, which are of a namespace, or of all."""
    try:
        vpas = (await client.list(VPAS, namespace)).items
    except ApiError as error:
        if error.code == NOT_FOUND:
            return Vpas()
        return Vpas("unread", unread=(f"verticalpodautoscalers: {error.message}",))
    by_pod, unread = dict[str, VerticalPodAutoscaler](), list[str]()
    for where in sorted({vpa.metadata.namespace for vpa in vpas}):
        own = [vpa for vpa in vpas if vpa.metadata.namespace == where]
        there = [pod for pod in pods if pod.metadata.namespace == where]
        by_pod |= await controlled(WorkloadReader(client, where, unread.append), own, there, unread.append)
    return Vpas("served", by_pod, tuple(unread))


async def controlled(
    reader: WorkloadReader, vpas: Sequence[VerticalPodAutoscaler], pods: Iterable[Pod], unread: Callable[[str], None]
) -> dict[str, VerticalPodAutoscaler]:
    """The VPA that controls a pod, by the pod's UID. Controllers are read of those pods only that a VPA selects."""
    targets = await reader.targets((), (vpa.spec.target_ref for vpa in vpas))
    selectors = [await selector_of(targets, reader, vpa, unread) for vpa in vpas]
    known = [selector for selector in selectors if selector is not None]
    selected = [pod for pod in pods if any(selector.matches(pod.metadata.labels) for selector in known)]
    controlling = Controlling(await reader.targets(selected), vpas)
    found = {pod.metadata.uid: await controlling.vpa_of(pod) for pod in selected}
    return {uid: vpa for uid, vpa in found.items() if vpa is not None}


async def selector_of(
    targets: Targets, reader: WorkloadReader, vpa: VerticalPodAutoscaler, unread: Callable[[str], None]
) -> Selector | None:
    """The selector of the pods of its target, as its recommender has it; None when there is none, and `unread` was told
    why."""
    target = vpa.spec.target_ref
    try:
        return await targets.selector(vpa.metadata.namespace, target)
    except Unsupported as error:
        if target is None or reader.could_read(target):
            unread(f"the pods of vpa/{vpa.metadata.name}: {error}")
        return None


async def read_vpa(client: Client, name: str, namespace: str) -> VerticalPodAutoscaler:
    """Raises ApiError, with words for a cluster that has no such kind."""
    try:
        return await client.get(VPAS, name, namespace)
    except ApiError as error:
        if error.code == NOT_FOUND and not error.details.get("name"):
            text = "this cluster does not serve verticalpodautoscalers: the autoscaler's CRDs are not installed"
            raise ApiError(NOT_FOUND, "NotFound", text) from error
        raise


def last_written(vpa: VerticalPodAutoscaler) -> str:
    """When its recommender last wrote the status, by the managed fields; else the last change of a condition."""
    written = [
        fields.time or ""
        for fields in vpa.metadata.managed_fields
        if fields.subresource == "status" or "recommender" in fields.manager
    ]
    times = [condition.last_transition_time or "" for condition in vpa.status.conditions]
    return max(filter(None, written), default="") or max(filter(None, times), default="")
