"""Pods as controllers count them (active, ready, available), and the pod of a template."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.meta.base import IntOrString, Object
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.times import parse_time


def condition(pod: Pod, kind: str) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == kind), None)


def is_ready(pod: Pod) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """None when it is not ready, or nobody knows since when."""
    found = condition(pod, "Ready")
    if found is None or found.status != "True" or not found.last_transition_time:
        return None
    return parse_time(found.last_transition_time)


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Ready for at least so long."""
    if not is_ready(pod):
        return False
    return min_ready_seconds == 0 or available_in(pod, min_ready_seconds, now) == 0


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until a ready pod is available, 0 when it is; None for one that is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return max(0.0, (since + timedelta(seconds=min_ready_seconds) - now).total_seconds())


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until the next of them becomes available by waiting; None when none will."""
    waits = [wait for pod in pods if (wait := available_in(pod, min_ready_seconds, now))]
    return min(waits) if waits else None


def from_template(template: PodTemplateSpec, owner: Object) -> Pod:
    """The pod that `owner` makes from its template, named after it, without a namespace."""
    meta = template.metadata
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{owner.metadata.name}-",
            labels=dict(meta.labels),
            annotations=dict(meta.annotations),
            finalizers=meta.finalizers,
            owner_references=(reference_to(owner),),
        ),
        spec=template.spec,
    )


def labelled(template: PodTemplateSpec, labels: Mapping[str, str]) -> PodTemplateSpec:
    """The pod with these labels beside its own."""
    meta = template.metadata
    return replace(template, metadata=replace(meta, labels={**meta.labels, **labels}))


def share(amount: IntOrString | None, of: int, *, up: bool) -> int:
    """A number, or a percentage of `of` rounded up or down; 0 for none."""
    if isinstance(amount, int):
        return amount
    if not amount or not amount.endswith("%") or not amount[:-1].isdecimal():
        return 0
    percent = int(amount[:-1]) * of
    return -(-percent // 100) if up else percent // 100
