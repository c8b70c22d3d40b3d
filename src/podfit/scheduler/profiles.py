"""Profiles: the names by which pods ask for a scheduler, each with weights of its own. They share queue and cache."""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, SpreadDefaulting
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring
from podfit.decide.placement.score import DEFAULT_WEIGHTS
from podfit.scheduler.cache import ClusterCache
from podfit.scheduler.names import NAME, scheduler_of
from podfit.scheduler.ranking import Rankings
from podfit.scheduler.writes import Writes


class Profile(msgspec.Struct, frozen=True):
    """`weights` are those of scores that differ from the defaults; events are told by the recorder of its name.

    `fit` is how NodeResourcesFit scores; `spread` is about pods that name no constraint of topology spread.
    """

    recorder: EventRecorder
    name: str = NAME
    weights: Mapping[str, int] = {}
    fit: FitScoring = LEAST_ALLOCATED
    spread: SpreadDefaulting = SYSTEM_DEFAULTING


class WorkingProfile:
    """What a profile works with."""

    def __init__(self, profile: Profile, client: Client, cache: ClusterCache, clock: Clock) -> None:
        self.name, self.fit, self.spread = profile.name, profile.fit, profile.spread
        self.weights = {**DEFAULT_WEIGHTS, **profile.weights}
        self.rankings = Rankings(cache, self.weights, self.fit)
        self.writes = Writes(client, profile.recorder, clock, name=profile.name)


class Profiles:
    """Those of one scheduler, at least one, each of another name."""

    def __init__(self, given: Iterable[Profile], client: Client, cache: ClusterCache, clock: Clock) -> None:
        self._by_name = {profile.name: WorkingProfile(profile, client, cache, clock) for profile in given}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def of(self, pod: Pod) -> WorkingProfile:
        """The profile of a pod that asks for one of them."""
        return self._by_name[scheduler_of(pod)]
