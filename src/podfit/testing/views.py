"""`PodView` and the like: what a test sees of a pod, as plain numbers in cores and bytes."""

from typing import Any

import msgspec

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.codec import to_dict
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO
from podfit.decide.pod.allocated import overlay
from podfit.decide.pod.requests import pod_limits, pod_requests
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize import by_status


class Amounts(msgspec.Struct, frozen=True):
    """Requests of a pod as a whole: `cpu` in cores, `memory` in bytes; limits are 0 where there is none."""

    cpu: float
    memory: int
    cpu_limit: float
    memory_limit: int


class PodView(msgspec.Struct, frozen=True):
    """A pod as it was when it was asked for. `document` is all of it, as JSON has it."""

    pod: Pod

    def __repr__(self) -> str:
        """What a failed assertion shows: `document` has the rest."""
        ready = "ready" if self.ready else "not ready"
        resizing = f", resize {self.resizing}" if self.resizing else ""
        where = f" on {self.node}" if self.node else ""
        name = f"{self.pod.metadata.namespace}/{self.name}"
        return f"<pod {name}: {self.phase}{where}, {ready}, {self.restarts} restarts{resizing}>"

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def node(self) -> str:
        return self.pod.spec.node_name

    @property
    def phase(self) -> str:
        return self.pod.status.phase

    @property
    def ready(self) -> bool:
        return any(condition.type == "Ready" and condition.status == "True" for condition in self.pod.status.conditions)

    @property
    def restarts(self) -> int:
        """The restarts of all its containers together."""
        statuses = (*self.pod.status.init_container_statuses, *self.pod.status.container_statuses)
        return sum(status.restart_count for status in statuses)

    @property
    def conditions(self) -> dict[str, str]:
        """Type to reason, or to status where there is no reason."""
        return {condition.type: condition.reason or condition.status for condition in self.pod.status.conditions}

    @property
    def resizing(self) -> str:
        """`Deferred`, `Infeasible`, `InProgress`, `Error`, `Proposed` while the node has yet to judge a newer
        size than it last spoke about, `Unknown` for another reason; nothing when no resize is outstanding.
        """
        stage = ResizeState.of(self.pod).stage
        return "" if stage is ResizeStage.NONE else stage.value

    @property
    def desired(self) -> Amounts:
        return _amounts(self.pod)

    @property
    def allocated(self) -> Amounts:
        """What the node has allocated."""
        return _amounts(overlay(self.pod, by_status.allocated(self.pod, FeatureGates()), FeatureGates()))

    @property
    def actual(self) -> Amounts:
        """What is enforced."""
        return _amounts(overlay(self.pod, by_status.actuated(self.pod, FeatureGates()), FeatureGates()))

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = to_dict(self.pod)
        return found


class EventView(msgspec.Struct, frozen=True):
    """An event as it was when it was asked for."""

    event: Event

    def __repr__(self) -> str:
        return f"<event {self.type} {self.reason} of {self.kind}/{self.about}: {self.message}>"

    @property
    def type(self) -> str:
        """`Normal` or `Warning`."""
        return self.event.type

    @property
    def reason(self) -> str:
        return self.event.reason

    @property
    def message(self) -> str:
        return self.event.message

    @property
    def count(self) -> int:
        """How often it happened."""
        series = self.event.series
        return series.count if series is not None else self.event.count or 1

    @property
    def kind(self) -> str:
        """The kind of what it is about."""
        return self.event.involved_object.kind

    @property
    def about(self) -> str:
        """The name of what it is about."""
        return self.event.involved_object.name

    @property
    def revision(self) -> int:
        return int(self.event.metadata.resource_version)


def _amounts(pod: Pod) -> Amounts:
    requests, limits = pod_requests(pod), pod_limits(pod)
    return Amounts(_cores(requests), _bytes(requests), _cores(limits), _bytes(limits))


def _cores(amounts: ResourceList) -> float:
    return amounts.get("cpu", ZERO).milli() / 1000


def _bytes(amounts: ResourceList) -> int:
    return amounts.get("memory", ZERO).value()
