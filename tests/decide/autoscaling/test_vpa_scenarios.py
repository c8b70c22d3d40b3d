"""Random clusters under an updater, for hours: InPlace never evicts, no disruption budget is violated, nobody is
disturbed faster than the tolerance allows, and where nothing refuses every pod gets what is recommended.
"""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.times import format_time, parse_time
from podfit.decide.autoscaling.actions import Action, ActionOutcome, EvictPod, RememberInfeasible, ResizePod, Skip
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.in_place import restarts_nothing
from podfit.decide.autoscaling.policies import IN_PLACE
from podfit.decide.autoscaling.update import View, run
from podfit.decide.autoscaling.update_settings import UpdateSettings

START = parse_time("2026-05-01T12:00:00Z")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
MODES = ("Recreate", "Auto", "InPlaceOrRecreate", "InPlace")
PASSES = 88


class Replica(msgspec.Struct):
    """`away` passes until it is available again; `stuck` says why a resize does not end."""

    name: str
    cpu: int = 100
    away: int = 0
    stuck: str = ""


class Scenario:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.mode = random.choice(MODES)
        self.replicas = [Replica(f"p{number}") for number in range(random.randint(1, 12))]
        self.least = random.randint(0, len(self.replicas))
        """Of pods that are available, by the disruption budget."""
        self.restarts = random.random() < 0.3
        self.refuses = random.choice((0.0, 0.0, 0.1, 0.5))
        self.tolerance = random.choice((0.25, 0.5, 1.0))
        self.target, self.made = 300, len(self.replicas)
        self.since: dict[str, Any] = {}
        self.infeasible: dict[str, Any] = {}
        self.resized = self.evicted = 0

    @property
    def available(self) -> int:
        return sum(not replica.away for replica in self.replicas)

    def step(self, number: int) -> None:
        """One pass, and what becomes of the pods until the next."""
        if number % 30 == 29:
            self.target = self.random.choice((150, 300, 600))
        now = START + timedelta(minutes=number)
        resizing = {replica.name for replica in self.replicas if replica.stuck}
        self.since = {name: self.since.get(name, now) for name in resizing}
        view = View(
            vpa=convert(self._vpa(), VerticalPodAutoscaler),
            pods=tuple(convert(self._pod(replica, now), Pod) for replica in self.replicas),
            configured={ObjectIdentity("apps", "ReplicaSet", "", "rs", "u"): len(self.replicas)},
            now=now,
            since=self.since,
            infeasible=self.infeasible,
        )
        before, actions, last = self.available, run(view, self._settings()), None
        try:
            while True:
                last = self._outcome(next(actions) if last is None else actions.send(last))
        except StopIteration:
            pass
        stays = len(self.replicas) - int(len(self.replicas) * self.tolerance)
        assert self.available >= min(before, stays) or (before == len(self.replicas) and before - self.available == 1)
        for replica in self.replicas:
            replica.away = max(0, replica.away - 1)
            if replica.stuck and self.random.random() < 0.2:
                replica.stuck = ""

    def _settings(self) -> UpdateSettings:
        return UpdateSettings(gates=Gates(in_place=True), tolerance=self.tolerance)

    def _outcome(self, action: Action) -> ActionOutcome:
        match action:
            case EvictPod():
                assert self.mode != IN_PLACE
                return self._evict(self._replica(action.pod))
            case ResizePod():
                return self._resize(self._replica(action.pod), action.pod)
            case RememberInfeasible():
                self.infeasible[action.pod.metadata.uid] = action.recommendation
            case Skip():
                pass
        return ActionOutcome.DONE

    def _disrupted(self, replica: Replica) -> bool:
        """Whether the budget allows it to be away."""
        return bool(replica.away) or self.available > self.least

    def _evict(self, replica: Replica) -> ActionOutcome:
        if not self._disrupted(replica):
            return ActionOutcome.REFUSED
        self.evicted += 1
        self.made += 1
        place = self.replicas.index(replica)
        self.replicas[place] = Replica(f"p{self.made}", self.target, away=self.random.randint(1, 3))
        assert self.available >= self.least
        return ActionOutcome.DONE

    def _resize(self, replica: Replica, pod: Pod) -> ActionOutcome:
        """As the shell carries it out: what may restart is asked for as an eviction first."""
        if not restarts_nothing(pod) and not self._disrupted(replica):
            return ActionOutcome.UNKNOWN
        if self.random.random() < self.refuses:
            return self.random.choice((ActionOutcome.REFUSED, ActionOutcome.NO_CAPACITY, ActionOutcome.UNKNOWN))
        self.resized += 1
        if self.random.random() < self.refuses:
            replica.stuck = self.random.choice(("Deferred", "Infeasible"))
        else:
            replica.cpu = self.target
        if self.restarts:
            replica.away = 1
        assert self.available >= self.least
        return ActionOutcome.DONE

    def _replica(self, pod: Pod) -> Replica:
        return next(replica for replica in self.replicas if replica.name == pod.metadata.name)

    def _pod(self, replica: Replica, now: Any) -> dict[str, Any]:
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}] if self.restarts else []
        container = {"name": "c", "resources": {"requests": {"cpu": f"{replica.cpu}m"}}, "resizePolicy": policy}
        pending = {"type": "PodResizePending", "status": "True", "reason": replica.stuck}
        return {
            "metadata": {"name": replica.name, "uid": replica.name, "ownerReferences": [OWNER]},
            "spec": {"containers": [container]},
            "status": {
                "phase": "Pending" if replica.away else "Running",
                "startTime": format_time(now),
                "conditions": [pending] if replica.stuck else [],
            },
        }

    def _vpa(self) -> dict[str, Any]:
        amounts = {"cpu": f"{self.target}m"}
        found = {"containerName": "c", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
        return {
            "metadata": {"name": "v", "namespace": "n"},
            "spec": {"updatePolicy": {"updateMode": self.mode}},
            "status": {"recommendation": {"containerRecommendations": [found]}},
        }


def play(seeds: range) -> tuple[int, int]:
    """How often pods were resized, and evicted."""
    resized = evicted = 0
    for seed in seeds:
        scenario = Scenario(seed)
        for number in range(PASSES):
            scenario.step(number)
        if not scenario.refuses and not scenario.restarts:
            assert {replica.cpu for replica in scenario.replicas} == {scenario.target}, seed
        resized, evicted = resized + scenario.resized, evicted + scenario.evicted
    return resized, evicted


@pytest.mark.row("V-086", "V-087", "V-102")
def test_vpa_in_place_never_evicts_and_budgets_hold() -> None:
    resized, evicted = play(range(100))
    assert resized > 1000
    assert evicted > 20


@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_vpa_in_place_never_evicts_and_budgets_hold_in_thousands(figure: Callable[[str, object], None]) -> None:
    """1,900 workloads with a VPA of random modes, budgets, refusals and restarts: in mode InPlace no pod is evicted,
    and no disruption budget is broken.
    """
    resized, evicted = play(range(100, 2000))
    figure("resizes", resized)
    figure("evictions in other modes", evicted)
