"""What a real controller manager of Kubernetes 1.36 made of 28 scenarios, against ours: answers, final objects, and the
states in between in their order. See `support/controlled.py` for how they are replayed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.storage.v1.types import StorageClass
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.testing.cluster import Cluster
from support.controlled import (
    FOREIGN,
    Paces,
    Scenario,
    Seen,
    missing,
    own_events,
    own_name,
    own_states,
    plain_answer,
    recorded_events,
    recorded_states,
)
from support.golden import golden_folder

_LATE = "upstream's node looked at the pod 0.7 s after its deletion, when its container had ended; ours at once"
PASSED_OVER = {
    ("deployment-rolling", "deployments/d"): (
        {9},
        "upstream counted again when the new set had made its first pod, ours before that and after it",
    ),
    ("job-onfailure", "pods/j-{rand1}"): ({9}, _LATE),
}
"""Recorded states in between (by their place) that are not among ours, and why; docs/compatibility.md has them."""


def scenarios() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((golden_folder() / "node/controllers.json").read_bytes())["scenarios"]
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(Path(tmp_path_factory.mktemp("controllers")))
    made.run(made.client.delete(StorageClass, "local"))  # the recorded cluster had no class
    yield made
    made.close()


@pytest.mark.parametrize("case", [pytest.param(scenario, id=scenario["id"]) for scenario in scenarios()])
def test_what_the_controllers_make_of_it(cluster: Cluster, case: dict[str, Any]) -> None:
    for runtime in cluster.runtimes():
        assert isinstance(runtime, SimulatedRuntime)
        runtime.delays = Paces(case)
    seen = Scenario(cluster, case).play()
    for request, answer in zip(case["requests"], seen.answers, strict=True):
        assert answer.code == request["code"], answer.body
        if request["answer"] is not None:
            assert plain_answer(answer.body, seen.names) == request["answer"]
    assert own_events(seen) == recorded_events(case)
    for name, changes in case["objects"].items():
        if FOREIGN not in name:
            _compare(case["id"], name, changes, seen)


def _compare(scenario: str, name: str, changes: list[dict[str, Any]], seen: Seen) -> None:
    recorded = recorded_states(changes)
    own = own_states(name, seen.objects.get(own_name(name, seen.names), []), seen.names)
    known, _ = PASSED_OVER.get((scenario, name), (set(), ""))
    absent = [place for place in missing(recorded, own) if place not in known]
    assert not absent, f"{name}: of the recorded states these are not ours: {[recorded[place] for place in absent]}"
    assert own[-1] == recorded[-1], name
