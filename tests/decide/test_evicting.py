"""Who may be evicted, and what it costs."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.decide.workload.disruption import MOST_NOTED, Evict, Refuse, Wait, evict

NOW = "2026-01-02T03:04:05Z"
PROCESSED = "The disruption budget b is still being processed by the server."


def pod(phase: str = "Running", *, ready: bool = True, **meta: Any) -> Pod:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    document = {
        "metadata": {"name": "p", "labels": {"app": "web"}, **meta},
        "status": {"phase": phase, "conditions": conditions},
    }
    return convert(document, Pod)


def budget(spec: dict[str, Any] | None = None, *, name: str = "b", generation: int = 1, **status: Any) -> Any:
    document = {
        "metadata": {"name": name, "generation": generation},
        "spec": {"selector": {"matchLabels": {"app": "web"}}} | (spec or {}),
        "status": {"observedGeneration": 1, "desiredHealthy": 2, "currentHealthy": 2} | status,
    }
    return convert(document, PodDisruptionBudget)


FULL = "The disruption budget b needs 2 healthy pods and has 2 currently"


@pytest.mark.parametrize(
    ("subject", "budgets", "verdict"),
    [
        (pod(), [], Evict()),
        (pod(), [budget({"selector": None})], Evict()),
        (pod(), [budget({"selector": {"matchLabels": {"app": "db"}}})], Evict()),
        (pod(), [budget({"selector": {}})], Wait("b", FULL)),
        (pod(), [budget()], Wait("b", FULL)),
        (pod(), [budget(generation=2, disruptionsAllowed=1)], Wait("b", PROCESSED, 10)),
        (pod(), [budget(disruptionsAllowed=-1)], Refuse("pdb disruptions allowed is negative", "b")),
        (pod("Pending"), [budget()], Evict()),
        (pod("Succeeded"), [budget()], Evict()),
        (pod("Failed"), [budget()], Evict()),
        (pod(deletionTimestamp=NOW), [budget()], Evict()),
        (pod(ready=False), [budget()], Evict()),
        (pod(ready=False), [budget(currentHealthy=1)], Wait("b", FULL.replace("has 2", "has 1"))),
        (pod(ready=False), [budget({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, currentHealthy=1)], Evict()),
        (pod(ready=False), [budget({"unhealthyPodEvictionPolicy": "IfHealthyBudget"})], Evict()),
    ],
)
def test_who_may_go(subject: Pod, budgets: list[PodDisruptionBudget], verdict: Evict | Wait | Refuse) -> None:
    assert evict(subject, budgets, NOW) == verdict


def test_a_pod_of_two_budgets_stays() -> None:
    verdict = evict(pod(), [budget(disruptionsAllowed=1), budget(name="c", disruptionsAllowed=1)], NOW)
    assert isinstance(verdict, Refuse)


def test_too_many_that_nobody_has_seen_go() -> None:
    noted = {f"p{n}": NOW for n in range(MOST_NOTED + 1)}
    assert isinstance(evict(pod(), [budget(disruptionsAllowed=1, disruptedPods=noted)], NOW), Refuse)


@pytest.mark.parametrize(
    ("allowed", "conditions"), [(3, []), (1, [("DisruptionAllowed", "False", "InsufficientPods")])]
)
def test_an_eviction_is_charged(allowed: int, conditions: list[tuple[str, str, str]]) -> None:
    verdict = evict(pod(), [budget(disruptionsAllowed=allowed)], NOW)
    assert isinstance(verdict, Evict)
    assert verdict.budget is not None
    status = verdict.budget.status
    assert (status.disruptions_allowed, status.disrupted_pods) == (allowed - 1, {"p": NOW})
    assert [(condition.type, condition.status, condition.reason) for condition in status.conditions] == conditions
