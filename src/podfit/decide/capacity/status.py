"""The autoscaler's status, as upstream writes it into ConfigMap `cluster-autoscaler-status` (C-082 to C-084)."""

import msgspec
from msgspec.structs import replace

from podfit.decide.capacity.backoff import Backoff
from podfit.decide.capacity.node_groups import NodeGroup
from podfit.decide.capacity.readiness import Counts

HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
IN_PROGRESS, NO_ACTIVITY, BACKOFF = "InProgress", "NoActivity", "Backoff"
CANDIDATES, NO_CANDIDATES = "CandidatesPresent", "NoCandidates"
RUNNING = "Running"
MOST_TOLD = 400
"""Groups in the status: a ConfigMap has 1 MiB."""


class _Unready(msgspec.Struct, frozen=True, rename="camel"):
    total: int
    resource_unready: int = 0


class _Registered(msgspec.Struct, frozen=True, rename="camel"):
    total: int
    ready: int
    not_started: int
    unready: _Unready
    being_deleted: int = 0


class _NodeCounts(msgspec.Struct, frozen=True, rename="camel"):
    registered: _Registered
    long_unregistered: int
    unregistered: int


class Health(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    status: str
    node_counts: _NodeCounts
    cloud_provider_target: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    last_probe_time: str = ""
    last_transition_time: str = ""


class _BackoffInfo(msgspec.Struct, frozen=True, rename="camel"):
    error_code: str
    error_message: str


class Activity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A scale-up or a scale-down; `candidates` are of the latter."""

    status: str
    candidates: int | None = None
    backoff_info: _BackoffInfo | None = None
    last_probe_time: str = ""
    last_transition_time: str = ""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    health: Health
    scale_up: Activity
    scale_down: Activity


class GroupStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    health: Health
    scale_up: Activity
    scale_down: Activity


class AutoscalerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    time: str
    autoscaler_status: str
    message: str = ""
    cluster_wide: ClusterStatus | None = None
    node_groups: tuple[GroupStatus, ...] = ()


class GroupFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What its status says of one group."""

    group: NodeGroup
    counts: Counts
    healthy: bool
    growing: bool
    backoff: Backoff | None
    candidates: int

    @property
    def scale_up(self) -> str:
        if self.growing:
            return IN_PROGRESS
        if not self.healthy:
            return UNHEALTHY
        return BACKOFF if self.backoff is not None else NO_ACTIVITY


def status_of(
    time: str, before: AutoscalerStatus | None, groups: tuple[GroupFacts, ...], counts: Counts, *, healthy: bool
) -> AutoscalerStatus:
    """At this time; what has the status that it had `before` keeps the time of its last transition."""
    candidates = sum(facts.candidates for facts in groups)
    whole = ClusterStatus(
        health=Health(status=HEALTHY if healthy else UNHEALTHY, node_counts=_node_counts(counts)),
        scale_up=Activity(status=IN_PROGRESS if any(facts.growing for facts in groups) else NO_ACTIVITY),
        scale_down=_scale_down(candidates),
    )
    earlier = {status.name: status for status in before.node_groups} if before is not None else {}
    wide = before.cluster_wide if before is not None else None
    told = groups[:MOST_TOLD]
    statuses = tuple(_timed_group(_group(facts), earlier.get(facts.group.id), time) for facts in told)
    return AutoscalerStatus(
        time=time, autoscaler_status=RUNNING, cluster_wide=_timed_cluster(whole, wide, time), node_groups=statuses
    )


def _group(facts: GroupFacts) -> GroupStatus:
    group, pause = facts.group, facts.backoff
    shown = facts.scale_up
    told = _BackoffInfo(pause.code, pause.text) if pause is not None and shown == BACKOFF else None
    return GroupStatus(
        name=group.id,
        health=Health(
            status=HEALTHY if facts.healthy else UNHEALTHY,
            node_counts=_node_counts(facts.counts),
            cloud_provider_target=group.target,
            min_size=group.min_size,
            max_size=group.max_size,
        ),
        scale_up=Activity(status=shown, backoff_info=told),
        scale_down=_scale_down(facts.candidates),
    )


def _scale_down(candidates: int) -> Activity:
    return Activity(status=CANDIDATES if candidates else NO_CANDIDATES, candidates=candidates)


def _node_counts(counts: Counts) -> _NodeCounts:
    registered = _Registered(
        counts.registered, counts.ready, counts.not_started, _Unready(counts.unready), counts.being_deleted
    )
    return _NodeCounts(registered, counts.long_unregistered, counts.unregistered)


def _timed_cluster(new: ClusterStatus, old: ClusterStatus | None, time: str) -> ClusterStatus:
    return ClusterStatus(
        health=_health(new.health, old.health if old else None, time),
        scale_up=_activity(new.scale_up, old.scale_up if old else None, time),
        scale_down=_activity(new.scale_down, old.scale_down if old else None, time),
    )


def _timed_group(new: GroupStatus, old: GroupStatus | None, time: str) -> GroupStatus:
    return GroupStatus(
        name=new.name,
        health=_health(new.health, old.health if old else None, time),
        scale_up=_activity(new.scale_up, old.scale_up if old else None, time),
        scale_down=_activity(new.scale_down, old.scale_down if old else None, time),
    )


def _health(new: Health, old: Health | None, time: str) -> Health:
    return replace(new, last_probe_time=time, last_transition_time=_transition(new.status, old, time))


def _activity(new: Activity, old: Activity | None, time: str) -> Activity:
    return replace(new, last_probe_time=time, last_transition_time=_transition(new.status, old, time))


def _transition(status: str, old: Health | Activity | None, time: str) -> str:
    return old.last_transition_time if old is not None and old.status == status else time
