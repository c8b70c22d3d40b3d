"""`AutoscalerSettings`: what the cluster autoscaler is told, under upstream's names and with its defaults.

Three are podfit's own, for what upstream does not look at: `waiting-resizes`, `waiting-resize-delay` and
`shrink-neighbours`.
"""

from typing import Annotated

import msgspec

from podfit.core.options import AT_LEAST_0, AT_LEAST_1, DURATION, POSITIVE, Bound, Option, Part, Unit

LEAST_WASTE, MOST_PODS, LEAST_NODES = "least-waste", "most-pods", "least-nodes"
CHANCE, PRIORITY = "random", "priority"
EXPANDERS = (LEAST_WASTE, MOST_PODS, LEAST_NODES, PRIORITY, CHANCE)
THRESHOLD = 0.5
"""Upstream's scale-down-utilization-threshold: a node that is used more stays; one that is used as much may go."""
_PERCENT = Bound("from 0 to 100", lambda value: 0 <= value <= 100)
_SHARE = Bound("from 0 to 1", lambda value: 0 <= value <= 1)


def _expanders(given: str) -> tuple[str, ...]:
    """ValueError for one that there is not, that is there twice, or that stands after `random` (C-038)."""
    names = tuple(name.strip() for name in given.split(","))
    for place, name in enumerate(names):
        if name not in EXPANDERS:
            raise ValueError(f"{name!r}: there are {', '.join(sorted(EXPANDERS))}")
        if name in names[:place]:
            raise ValueError(f"{name!r} is named twice")
        if CHANCE in names[:place]:
            raise ValueError(f"{name!r} stands after {CHANCE}, which leaves nothing to decide")
    return names


class Range(msgspec.Struct, frozen=True):
    """At least and at most."""

    least: int
    most: int


def _range(text: str) -> Range:
    least, colon, most = text.partition(":")
    if not colon or not least.isdecimal() or not most.isdecimal() or len(text) > 40 or int(least) > int(most):
        raise ValueError(f"{text[:40]!r}: write MIN:MAX")
    return Range(int(least), int(most))


_RANGE = Unit(name="MIN:MAX", read=_range, text=lambda given: f"{given.least}:{given.most}")
_NAMES = Unit(name="list", read=_expanders, text=",".join)


class ScaleUpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, pieces and shares."""

    expander: Annotated[
        tuple[str, ...],
        Option(
            "Which group grows when several would do, separated by commas: least-waste, most-pods, least-nodes, "
            "priority (ConfigMap cluster-autoscaler-priority-expander), random.",
            unit=_NAMES,
        ),
    ] = (LEAST_WASTE,)
    balance_similar: Annotated[
        bool, Option("Spread new nodes over groups whose nodes are alike.", flag="balance-similar-node-groups")
    ] = False
    most_at_once: Annotated[
        int, Option("New nodes of one scale-up; 0 is no limit.", flag="max-nodes-per-scaleup", bound=AT_LEAST_0)
    ] = 1000
    most_nodes: Annotated[
        int, Option("Nodes of the cluster; 0 is no limit.", flag="max-nodes-total", bound=AT_LEAST_0)
    ] = 0
    cores: Annotated[Range, Option("CPUs of all nodes.", flag="cores-total", unit=_RANGE)] = Range(0, 320_000)
    memory: Annotated[Range, Option("GiB of all nodes.", flag="memory-total", unit=_RANGE)] = Range(0, 6_400_000)
    pod_delay: Annotated[
        float, Option("How old a pod is before it counts.", flag="new-pod-scale-up-delay", unit=DURATION)
    ] = 0.0
    from_zero: Annotated[bool, Option("Also groups that have no node.", flag="scale-up-from-zero")] = True
    expendable_below: Annotated[
        int, Option("Pods of a lower priority count for nothing.", flag="expendable-pods-priority-cutoff")
    ] = -10
    waiting_resizes: Annotated[
        bool,
        Option(
            "Resizes that wait are demand: a neighbour shrinks or moves, or a node comes (docs/cluster-autoscaler.md)."
        ),
    ] = True
    shrinks: Annotated[
        bool,
        Option(
            "For them, first shrink neighbours of lower priority that say how far they may be (podfit.dev/minimum).",
            flag="shrink-neighbours",
        ),
    ] = True
    resize_delay: Annotated[
        float, Option("How long a resize waits before it counts.", flag="waiting-resize-delay", unit=DURATION)
    ] = 30.0


class BackoffSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long a group that failed is left alone."""

    first: Annotated[
        float, Option("After its first failure.", flag="initial-node-group-backoff-duration", unit=DURATION)
    ] = 300.0
    longest: Annotated[float, Option("After many.", flag="max-node-group-backoff-duration", unit=DURATION)] = 1800.0
    reset: Annotated[
        float, Option("Failures are forgotten after this.", flag="node-group-backoff-reset-timeout", unit=DURATION)
    ] = 10_800.0


class ScaleDownSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, pieces and shares."""

    enabled: Annotated[bool, Option("Remove nodes that are not needed.", flag="scale-down-enabled")] = True
    after_add: Annotated[
        float, Option("Pause after nodes were added.", flag="scale-down-delay-after-add", unit=DURATION)
    ] = 600.0
    after_delete: Annotated[
        float,
        Option(
            "Pause after a node was removed; 0 is --scan-interval.", flag="scale-down-delay-after-delete", unit=DURATION
        ),
    ] = 0.0
    after_failure: Annotated[
        float, Option("Pause after a removal failed.", flag="scale-down-delay-after-failure", unit=DURATION)
    ] = 180.0
    unneeded: Annotated[
        float, Option("How long a node is not needed before it goes.", flag="scale-down-unneeded-time", unit=DURATION)
    ] = 600.0
    unready: Annotated[
        float, Option("The same of one that is not ready.", flag="scale-down-unready-time", unit=DURATION)
    ] = 1200.0
    unready_too: Annotated[bool, Option("Also nodes that are not ready.", flag="scale-down-unready-enabled")] = True
    threshold: Annotated[
        float,
        Option(
            "A node whose pods ask for a larger share stays.", flag="scale-down-utilization-threshold", bound=_SHARE
        ),
    ] = THRESHOLD
    ignore_daemon_sets: Annotated[
        bool, Option("Leave DaemonSets' pods out of that share.", flag="ignore-daemonsets-utilization")
    ] = False
    ignore_mirror_pods: Annotated[
        bool, Option("Leave static pods out of that share.", flag="ignore-mirror-pods-utilization")
    ] = False
    at_once: Annotated[int, Option("Nodes removed at a time.", flag="max-scale-down-parallelism", bound=AT_LEAST_1)] = (
        10
    )
    drained_at_once: Annotated[
        int, Option("Of them nodes with pods.", flag="max-drain-parallelism", bound=AT_LEAST_1)
    ] = 1
    recheck: Annotated[
        float,
        Option(
            "How long a node whose pods could not move is left.", flag="unremovable-node-recheck-timeout", unit=DURATION
        ),
    ] = 300.0
    soft_taints: Annotated[
        int, Option("Soft taints written in one scan.", flag="max-bulk-soft-taint-count", bound=AT_LEAST_0)
    ] = 10


class DrainSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is emptied, and which pods keep it."""

    most_grace: Annotated[
        float, Option("Seconds that a pod has to end.", flag="max-graceful-termination-sec", bound=AT_LEAST_0)
    ] = 600.0
    eviction_time: Annotated[
        float, Option("How long an eviction is tried.", flag="max-pod-eviction-time", unit=DURATION)
    ] = 120.0
    after_taint: Annotated[
        float,
        Option("Pause between the taint and the first eviction.", flag="node-delete-delay-after-taint", unit=DURATION),
    ] = 5.0
    cordon: Annotated[bool, Option("Also cordon the node.", flag="cordon-node-before-terminating")] = True
    daemons_of_empty: Annotated[
        bool, Option("Evict DaemonSets' pods of empty nodes.", flag="daemonset-eviction-for-empty-nodes")
    ] = False
    daemons_of_occupied: Annotated[
        bool, Option("Evict DaemonSets' pods of other nodes.", flag="daemonset-eviction-for-occupied-nodes")
    ] = True
    system_pods: Annotated[
        bool, Option("A pod of kube-system without a budget keeps its node.", flag="skip-nodes-with-system-pods")
    ] = True
    local_storage: Annotated[
        bool, Option("A pod with local storage keeps its node.", flag="skip-nodes-with-local-storage")
    ] = True
    custom_controllers: Annotated[
        bool,
        Option(
            "A pod of a controller that is not known keeps its node.", flag="skip-nodes-with-custom-controller-pods"
        ),
    ] = True
    least_replicas: Annotated[
        int, Option("Fewer of a ReplicaSet keep the node.", flag="min-replica-count", bound=AT_LEAST_0)
    ] = 0
    system_pod_timeout: Annotated[
        float,
        Option(
            "An older pod of kube-system keeps no node.", flag="blocking-system-pod-distruption-timeout", unit=DURATION
        ),
    ] = 3600.0


class AutoscalerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one cluster autoscaler."""

    interval: Annotated[
        float, Option("From one look to the next.", flag="scan-interval", unit=DURATION, bound=POSITIVE)
    ] = 10.0
    provision_time: Annotated[
        float,
        Option("How long a new node may take to come.", flag="max-node-provision-time", unit=DURATION, bound=POSITIVE),
    ] = 900.0
    startup_time: Annotated[
        float,
        Option("How long it may take to be ready then.", flag="max-node-startup-time", unit=DURATION, bound=POSITIVE),
    ] = 900.0
    unready_percent: Annotated[
        float, Option("More unready nodes stop everything ...", flag="max-total-unready-percentage", bound=_PERCENT)
    ] = 45.0
    unready_allowed: Annotated[
        int, Option("... if they are more than these.", flag="ok-total-unready-count", bound=AT_LEAST_0)
    ] = 3
    enforce_min_size: Annotated[
        bool, Option("Bring groups up to their least size.", flag="enforce-node-group-min-size")
    ] = False
    status_written: Annotated[bool, Option("Write the status.", flag="write-status-configmap")] = True
    status_name: Annotated[str, Option("Its ConfigMap.", flag="status-config-map-name")] = "cluster-autoscaler-status"
    namespace: Annotated[str, Option("Of its ConfigMaps.", flag="namespace")] = "kube-system"
    scale_up: Annotated[ScaleUpSettings, Part()] = ScaleUpSettings()
    backoff: Annotated[BackoffSettings, Part()] = BackoffSettings()
    scale_down: Annotated[ScaleDownSettings, Part()] = ScaleDownSettings()
    drain: Annotated[DrainSettings, Part()] = DrainSettings()
