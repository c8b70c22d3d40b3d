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
    own_name,
    own_states,
    plain_answer,
    recorded_states,
)
from support.golden import golden_folder

_BRIEF = "upstream's copy of the pods was a moment behind what it had made, ours had it"
_EARLY = "the budget was counted before the pods were made, ours after"
_PHASE = "upstream's node tells that a container has ended a moment before it tells the phase of the pod, ours at once"
_SINCE = "counted between the two states of the pod that ours tells as one"
_ENDS = "the simulated `sleep` ends when it is told to, the real one when it is killed, so the pod does not fail"
_LATE = "upstream's job ended the pod while it ran again, ours while it waited to"
PASSED_OVER = {
    ("deployment-rolling", "deployments/d"): ({9}, "upstream wrote the numbers before it noted the progress"),
    ("daemonset", "daemonsets/ds"): ({5}, _BRIEF),
    ("resourcequota", "pods/p1"): ({6, 7}, _ENDS),
    ("pdb-eviction", "poddisruptionbudgets/p"): ({1, 2}, _EARLY),
    ("pdb-blocks", "poddisruptionbudgets/p"): ({1}, _EARLY),
    ("job-ttl", "pods/j-{rand1}"): ({5, 8}, _PHASE),
    ("job-backofflimit", "pods/j-{rand1}"): ({5}, _PHASE),
    ("job-backofflimit", "pods/j-{rand2}"): ({5}, _PHASE),
    ("job-backofflimit", "jobs/j"): ({2, 3}, _SINCE),
    ("job-complete", "pods/j-{rand1}"): ({5}, _PHASE),
    ("job-complete", "pods/j-{rand2}"): ({5}, _PHASE),
    ("job-complete", "pods/j-{rand3}"): ({5}, _PHASE),
    ("job-complete", "jobs/j"): ({3, 7}, _SINCE),
    ("job-onfailure", "pods/j-{rand1}"): ({7, 8, 9, 10, 11}, _LATE),
    ("job-podfailurepolicy", "pods/j-{rand1}"): ({5}, _PHASE),
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


@pytest.mark.parametrize("case", [pytest.param(each, id=each["id"]) for each in scenarios()])
def test_what_the_controllers_make_of_it(cluster: Cluster, case: dict[str, Any]) -> None:
    for runtime in cluster.runtimes():
        assert isinstance(runtime, SimulatedRuntime)
        runtime.delays = Paces(case)
    seen = Scenario(cluster, case).play()
    for request, answer in zip(case["requests"], seen.answers, strict=True):
        assert answer.code == request["code"], answer.body
        if request["answer"] is not None:
            assert plain_answer(answer.body, seen.names) == request["answer"]
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
