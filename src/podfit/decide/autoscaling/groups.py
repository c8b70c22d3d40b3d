"""Disruption limits: how many pods of one controller may be disrupted at once (V-085, V-086, V-088).

disruptable   what runs, without those disrupted in this run, is above what has to stay: configured - tolerance
"""

from collections import Counter
from collections.abc import Mapping

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity, controller_named
from podfit.decide.autoscaling.boost import boosted_containers


class Group:
    """The pods of one controller; the counts of what was disrupted grow during a run."""

    def __init__(self, configured: int, tolerance: int, live: int, pending: int, *, below_minimum: bool) -> None:
        self.configured, self.tolerance = configured, tolerance
        self.running = live - pending
        self.below_minimum = below_minimum
        self.evicted = self.resized = 0

    @property
    def disruptable(self) -> bool:
        left = self.running - self.evicted - self.resized
        untouched = not self.evicted and not self.resized
        alone = self.configured == self.running and self.tolerance == 0 and untouched
        return left > self.configured - self.tolerance or alone

    @property
    def shortage(self) -> str:
        """Why none of it is disturbed now, where `disruptable` is not so."""
        left, stays = self.running - self.evicted - self.resized, self.configured - self.tolerance
        return f"{left} of {self.configured} pods that are wanted run undisturbed, and {stays} have to stay so"


def owner_of(pod: Pod) -> ObjectIdentity | None:
    """The controller that made a pod, not what made that."""
    return controller_named(pod.metadata)


def too_small(pods: tuple[Pod, ...], min_replicas: int) -> dict[ObjectIdentity, int]:
    """Owners with fewer pods than that, and how many they have."""
    live = Counter(owner for pod in pods if (owner := owner_of(pod)) is not None)
    return {owner: number for owner, number in live.items() if number < min_replicas}


def groups(
    pods: tuple[Pod, ...],
    configured: Mapping[ObjectIdentity, int],
    *,
    min_replicas: int,
    tolerance: float,
    in_place_below_minimum: bool,
) -> dict[ObjectIdentity, Group]:
    """The groups by owner. `configured` has what controllers want: 0 leaves a group out; of one not named it is what
    lives.

    Groups below `min_replicas` are left out too, unless a pod of it is boosted, or, with `in_place_below_minimum`, for
    what disturbs nobody.
    """
    every: dict[ObjectIdentity, list[Pod]] = {}
    for pod in pods:
        if (owner := owner_of(pod)) is not None:
            every.setdefault(owner, []).append(pod)
    result = {}
    for owner, mine in every.items():
        small = len(mine) < min_replicas and not any(any(boosted_containers(pod)) for pod in mine)
        wanted = configured.get(owner, len(mine))
        if not wanted or (small and not in_place_below_minimum):
            continue
        pending = sum(pod.status.phase == "Pending" for pod in mine)
        result[owner] = Group(wanted, int(wanted * tolerance), len(mine), pending, below_minimum=small)
    return result
