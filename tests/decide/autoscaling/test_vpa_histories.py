"""Whole histories of containers: recommendations and checkpoints as upstream's recommender made them."""

from typing import Any

import pytest

from podfit.api.meta.codec import to_dict
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.cluster_state import ClusterState
from support.golden import Case
from support.vpa_golden import replay
from support.vpa_history import VPA, Replay


def starts_with_nothing(case: Case) -> bool:
    """Whether a container's first memory sample is 0, after which upstream keeps no peak for a whole interval."""
    first = (next((value for value in series["values"] if value is not None), None) for series in memory_series(case))
    return any(weight == 0 for weight in first) and any(
        max(filter(None, s["values"]), default=0) for s in memory_series(case)
    )


def memory_series(case: Case) -> list[Case]:
    return [series for series in case["series"] if series["resource"] == "memory"]


def close(quantity: Quantity, recorded: str) -> bool:
    other = Quantity.parse(recorded)
    return abs(quantity.nano - other.nano) <= max(10**6, 1e-6 * other.nano)


def assert_recommends(recommendation: Any, recorded: list[Case] | None, *, resources: tuple[str, ...]) -> None:
    every = recommendation.container_recommendations
    assert [container.container_name for container in every] == [
        container["containerName"] for container in recorded or ()
    ]
    for own, other in zip(every, recorded or (), strict=True):
        for ours, theirs in (
            (own.target, "target"),
            (own.lower_bound, "lowerBound"),
            (own.upper_bound, "upperBound"),
            (own.uncapped_target, "uncappedTarget"),
        ):
            assert ours.keys() == other.get(theirs, {}).keys()
            for name in resources:
                assert name not in ours or close(ours[name], other[theirs][name]), (theirs, name)


def assert_knows(state: ClusterState, details: dict[str, Case], *, memory: bool) -> None:
    members = state.members([VPA])
    assert sorted(name for _, name in members.names) == sorted(details)
    for place, ((_, name), merged) in enumerate(
        (name, merged) for part, merged in state.merged(members) for name in members.names[part]
    ):
        recorded = details[name]
        assert merged.count[place] == recorded["total_samples"]
        if recorded["total_samples"]:
            assert merged.first[place] == recorded["first_sample_t"]
            assert merged.last[place] == recorded["last_sample_t"]
        for bank, resource, unit in ((merged.cpu, "cpu", "cores"), (merged.memory, "memory", "bytes")):
            if resource == "memory" and not memory:
                continue
            shares = sorted(recorded[f"{resource}_percentiles_{unit}"])
            percentiles = bank.percentiles([float(share) for share in shares])[:, place]
            expected = [recorded[f"{resource}_percentiles_{unit}"][share] for share in shares]
            assert percentiles == pytest.approx(expected, rel=1e-9)
            assert bank.total[place] == pytest.approx(recorded[f"{resource}_total_weight"], rel=1e-9)


@pytest.mark.row("V-020", "V-021", "V-022", "V-023", "V-024", "V-025", "V-026", "V-027", "V-028", "V-030", "V-036")
@replay("histories")
def test_vpa_histories_give_the_recorded_recommendations(case: Case) -> None:
    replayed, whole = Replay(case), not starts_with_nothing(case)
    resources = ("cpu", "memory") if whole else ("cpu",)
    for (time, evaluation), recorded in zip(replayed.evaluations(), case["expect"], strict=True):
        assert time == recorded["t"]
        assert_recommends(evaluation, recorded["containerRecommendations"], resources=resources)
        assert_knows(replayed.state, recorded["details"], memory=whole)
        if "checkpoint" in recorded and whole:
            assert_saves(replayed.state, time, recorded["checkpoint"])
    assert (replayed.rejected_samples, replayed.rejected_ooms) == (case["rejected_samples"], case["rejected_ooms"])


def assert_saves(state: ClusterState, time: float, recorded: dict[str, Case]) -> None:
    saved = dict(state.checkpoints([VPA], time)).get(VPA, [])
    assert sorted(checkpoint.spec.container_name for checkpoint in saved) == sorted(recorded)
    for checkpoint in saved:
        expected, status = recorded[checkpoint.spec.container_name], to_dict(checkpoint.status)
        for histogram in ("cpuHistogram", "memoryHistogram"):
            ours, theirs = status[histogram], expected.get(histogram, {})
            assert ours.get("bucketWeights", {}) == theirs.get("bucketWeights", {})
            assert ours.get("referenceTimestamp") == theirs.get("referenceTimestamp")
            assert ours.get("totalWeight", 0) == pytest.approx(theirs.get("totalWeight", 0), rel=1e-9)
        for field in ("firstSampleStart", "lastSampleStart", "totalSamplesCount", "version"):
            assert status.get(field) == expected.get(field), field
