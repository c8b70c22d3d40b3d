"""Metrics of resizes, under upstream's names (R-186 to R-190), and the three sizes of every pod side by side.

Desired, allocated and actual lie together in one gauge, so that a rule can compare them: a container that waits has a
desired size above its allocated one, a resize under way an allocated size that is not the actual one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.node.conditions import Conditions
from podfit.decide.pod.allocated import resizable
from podfit.decide.pod.resize_state import DEFERRED, IN_PROGRESS, INFEASIBLE, PENDING
from podfit.net.metrics import Metrics, Series

_POD_LABELS = ("namespace", "pod", "resource", "requirement", "state")
_CONTAINER_LABELS = ("namespace", "pod", "container", "resource", "requirement", "state")
_BILLION = 1_000_000_000


class ResizeMetrics:
    """The gauges read the conditions when they are scraped, so they cannot drift from them (R-187)."""

    def __init__(self, metrics: Metrics, conditions: Callable[[], Conditions]) -> None:
        self._requested = metrics.counter(
            "kubelet_container_requested_resizes_total",
            "Requested resizes, counted by container.",
            ("resource", "requirement", "operation"),
        )
        infeasible = metrics.counter(
            "kubelet_pod_infeasible_resizes_total", "Resizes found infeasible.", ("reason_detail",)
        )
        accepted = metrics.counter(
            "kubelet_pod_deferred_accepted_resizes_total", "Resizes accepted after a deferral.", ("retry_trigger",)
        )
        preemptions = metrics.gauge(  # a gauge, for the library would add `_total` to a counter's name
            "kubelet_preemptions",
            "Pods ended for a critical pod, by the resource that was short first.",
            ("preemption_signal",),
        )
        self._counted: Mapping[str, Callable[[str], None]] = {
            "infeasible": lambda label: infeasible.labels(label).inc(),
            "deferred_accepted": lambda label: accepted.labels(label).inc(),
            "preemptions": lambda label: preemptions.labels(label).inc(),
        }
        pending = metrics.gauge("kubelet_pod_pending_resizes", "Pods with a pending resize.", ("reason",))
        for reason in (DEFERRED, INFEASIBLE):
            pending.labels(reason.lower()).set_function(partial(_count, conditions, PENDING, reason))
        in_progress = metrics.gauge("kubelet_pod_in_progress_resizes", "Pods with a resize in progress.")
        in_progress.set_function(partial(_count, conditions, IN_PROGRESS, None))

    def count(self, metric: str, label: str) -> None:
        """Add one to the metric that the node machine calls so (`decide.node.effects.Count`)."""
        self._counted[metric](label)

    def requested(self, old: Pod, new: Pod, gates: FeatureGates) -> None:
        """Count each change of a container's request or limit; zero is absent (R-186)."""
        before = {container.name: container.resources for container in resizable(old, gates)}
        for container in resizable(new, gates):
            was, now = before.get(container.name, container.resources), container.resources
            for requirement, ours, theirs in (
                ("requests", now.requests, was.requests),
                ("limits", now.limits, was.limits),
            ):
                for resource in ("cpu", "memory"):
                    operation = _operation(theirs, ours, resource)
                    if operation:
                        self._requested.labels(resource, requirement, operation).inc()


def _count(conditions: Callable[[], Conditions], kind: str, reason: str | None) -> int:
    return conditions().count(kind, reason)


def _operation(old: Mapping[str, Quantity], new: Mapping[str, Quantity], name: str) -> str:
    before, after = old.get(name, ZERO), new.get(name, ZERO)
    if before == after:
        return ""
    if not before or not after:
        return "remove" if before else "add"
    return "increase" if after > before else "decrease"


class SizeMetrics:
    """`pods` are as desired, with the newest status that this node knows; `allocated` gives one as allocated."""

    def __init__(self, metrics: Metrics, pods: Callable[[], Iterable[Pod]], allocated: Callable[[Pod], Pod]) -> None:
        self._pods, self._allocated = pods, allocated
        text = (
            "by state: desired (the spec), allocated (what the node has set aside), actual (what the runtime enforces)."
        )
        metrics.collected(
            "podfit_container_resource",
            f"CPU cores or bytes of memory of a container, {text}",
            _CONTAINER_LABELS,
            self._of_containers,
        )
        metrics.collected(
            "podfit_pod_resource",
            f"CPU cores or bytes of memory that a pod names as a whole, {text}",
            _POD_LABELS,
            self._of_pods,
        )

    def _of_containers(self) -> Iterator[Series]:
        for pod in self._pods():
            for state, shown in (("desired", pod), ("allocated", self._allocated(pod))):
                for container in all_containers(shown.spec):
                    yield from _series((*_name(pod), container.name), container.resources, state)
            for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
                yield from _series((*_name(pod), status.name), status.resources, "actual")

    def _of_pods(self) -> Iterator[Series]:
        for pod in self._pods():
            yield from _series(_name(pod), pod.spec.resources, "desired")
            yield from _series(_name(pod), self._allocated(pod).spec.resources, "allocated")
            if pod.spec.resources is not None:
                yield from _series(_name(pod), pod.status.resources, "actual")


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _series(who: tuple[str, ...], resources: ResourceRequirements | None, state: str) -> Iterator[Series]:
    if resources is None:
        return
    for requirement, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        for resource in ("cpu", "memory"):
            if resource in amounts:
                yield (*who, resource, requirement, state), amounts[resource].nano / _BILLION
