"""The order in which pods end when their node is shut down, and how long each has: upstream's graceful node shutdown.

    group 0      priorities from 0 (and below)         shutdownGracePeriod - shutdownGracePeriodCriticalPods
    group 2e9    priorities of the system's own        shutdownGracePeriodCriticalPods

One group after the other, the lowest first. A pod gets the seconds of its group, or its own grace period if that is
less; a group without pods costs no time.
"""

from collections.abc import Iterable

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.system_priority import SYSTEM_CRITICAL

TERMINATED = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."


class ShutdownGroup(msgspec.Struct, frozen=True):
    """Pods of this priority and above, up to the next group; `seconds` is what all of them have."""

    priority: int
    seconds: int


Groups = tuple[ShutdownGroup, ...]
"""None of them: a shutdown ends nobody."""


def two_groups(period: float, critical: float) -> Groups:
    """The groups of `shutdownGracePeriod` and its CriticalPods, in seconds; none when the first is 0."""
    if not period:
        return ()
    return (ShutdownGroup(0, int(period - critical)), ShutdownGroup(SYSTEM_CRITICAL, int(critical)))


def problem(period: float, critical: float, groups: Groups) -> str:
    """Why these cannot be followed, with upstream's names of the fields; empty when they can."""
    if groups and (period or critical):
        return "shutdownGracePeriodByPodPriority: either this, or shutdownGracePeriod and its CriticalPods"
    if critical > period:
        return f"shutdownGracePeriodCriticalPods {critical:g}s: must not be more than shutdownGracePeriod"
    for name, seconds in (("shutdownGracePeriod", period), ("shutdownGracePeriodCriticalPods", critical)):
        if 0 < seconds < 1:
            return f"{name} {seconds:g}s: must be 0 or at least 1s"
    if any(group.seconds < 0 for group in groups):
        return "shutdownGracePeriodByPodPriority: shutdownGracePeriodSeconds must not be negative"
    if len({group.priority for group in groups}) < len(groups):
        return "shutdownGracePeriodByPodPriority: a priority is there twice"
    return ""


def by_group(groups: Groups, pods: Iterable[Pod]) -> list[tuple[ShutdownGroup, list[Pod]]]:
    """Who ends together, first those that end first. Who is below all groups is in the first; none is empty."""
    ordered = sorted(groups, key=lambda group: group.priority)
    members: dict[int, list[Pod]] = {group.priority: [] for group in ordered}
    for pod in pods:
        priority = pod.spec.priority or 0
        reached = [group.priority for group in ordered if group.priority <= priority]
        members[reached[-1] if reached else ordered[0].priority].append(pod)
    return [(group, members[group.priority]) for group in ordered if members[group.priority]]


def grace(pod: Pod, group: ShutdownGroup) -> int:
    """Seconds for the containers of one pod; at least one."""
    own = pod.spec.termination_grace_period_seconds
    return max(1, min(group.seconds, own if own is not None else group.seconds))


def is_shutdown(groups: Groups, manager: str) -> bool:
    """Whether SIGTERM means that the machine goes down, and not that the kubelet is started anew. `manager` is what
    systemd says of itself, empty without systemd: then nothing else tells a shutdown.
    """
    return bool(groups) and manager in ("", "stopping")
