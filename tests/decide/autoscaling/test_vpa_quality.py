"""How good recommendations were, as numbers: whole batches of samples beside what was recommended for them."""

import numpy as np
import pytest

from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.policies import UPDATE_MODES, size_log2
from podfit.decide.autoscaling.quality import RELATIVE, Counts, Quality, begin, remember
from podfit.decide.autoscaling.tracked import PodKey, VpaKey

NOW, VPA = 1_770_000_000.0, VpaKey("ns", "v")
ROWS = np.arange(3)


def counted(counts: Counts) -> dict[tuple[str, ...], tuple[int, float]]:
    """By labels: how many, and their sum."""
    return {labels: (sum(numbers), round(total, 9)) for labels, _, numbers, total in counts.read()}


def known(cpu: list[float], mode: str = "Off", *, size: int = 1, made: float = NOW) -> Quality:
    found = Quality(UPDATE_MODES)
    again(found, cpu, mode, size=size, made=made)
    return found


def again(found: Quality, cpu: list[float], mode: str = "Off", *, size: int = 1, made: float = NOW) -> None:
    rows = np.arange(len(cpu))
    modes = np.full(len(cpu), found.mode(mode), dtype=np.int8)
    targets = {CPU: np.array(cpu), MEMORY: np.full(len(cpu), np.nan)}
    found.recommended(rows, modes, np.full(len(cpu), size), targets, np.full(5, made))


@pytest.mark.row("V-121")
def test_vpa_usage_is_compared_with_what_was_recommended() -> None:
    found = known([1.0, 2.0, 4.0])
    found.used(CPU, ROWS, np.array([0.5, 2.0, 6.0]))
    assert counted(found.differences) == {("Off", CPU, "false"): (3, -0.5 + 0.0 + 0.5)}
    assert counted(found.recommendations[CPU]) == {("Off",): (3, 7.0)}
    assert counted(found.over[CPU]) == {("Off", "false"): (1, 0.5)}
    assert counted(found.lower[CPU]) == {("Off", "false"): (2, 2.0)}
    assert not found.missing


@pytest.mark.row("V-121")
def test_vpa_usage_of_what_was_not_recommended_is_counted() -> None:
    found = known([1.0, 2.0, 4.0])
    found.used(MEMORY, ROWS, np.array([1e8, 2e8, 3e8]), oom=True)
    assert found.missing == {("Off", MEMORY, "true"): 3}
    assert counted(found.lower[MEMORY]) == {("Off", "true", "true"): (3, 6e8)}
    assert counted(found.differences) == {}


def test_usage_of_pods_without_a_vpa_does_not_count() -> None:
    found = known([1.0])
    found.used(CPU, np.array([2, 4, 9]), np.array([1.0, 1.0, 1.0]))
    assert not found.missing
    assert counted(found.recommendations[CPU]) == {}


def test_changes_of_recommendations_are_relative() -> None:
    found = known([1.0, 2.0, np.nan], size=2)
    again(found, [1.5, 1.0, 3.0], size=2)
    assert counted(found.changes) == {("Off", CPU, "2"): (2, 0.5 - 0.5)}
    again(found, [3.0, 1.0, 3.0], size=2, made=NOW + 1)
    assert counted(found.changes) == {("Off", CPU, "2"): (2, 0.0)}, "rows that were taken again are others"


def test_samples_fall_into_the_bucket_that_they_do_not_exceed() -> None:
    counts = Counts((1.0, 2.0))
    counts.add((), np.array([0.0, 1.0, 1.5, 2.0, 9.0]))
    ((_, bounds, numbers, total),) = counts.read()
    assert (bounds, numbers, total) == ((1.0, 2.0), [2, 2, 1], 13.5)
    assert list(RELATIVE) == sorted(RELATIVE)


@pytest.mark.parametrize(("pods", "size"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (1023, 9), (2**30, 20)])
def test_the_size_of_a_vpa_is_the_whole_logarithm(pods: int, size: int) -> None:
    assert size_log2(pods) == size


def test_vpa_remembers_the_uncapped_target_of_every_aggregate() -> None:
    state, quality = ClusterState(), Quality(UPDATE_MODES)
    state.set_vpa(VPA, from_map({"app": "a"}), None)
    for number in range(2):
        labels = {"app": "a", "hash": str(number)}
        state.set_pod(PodKey("ns", f"p{number}"), labels, ["c", "silent"], NOW)
    state.add_sample(PodKey("ns", "p0"), "c", NOW, cpu=500, memory=None)
    remember(quality, state, state.found({VPA: {}}), {VPA: "InPlace"})
    slots = [state.slot(PodKey("ns", f"p{number}"), name) for number in range(2) for name in ("c", "silent")]
    rows = state.model.containers.aggregate[np.array(slots)]
    quality.used(CPU, rows, np.full(4, 0.1))
    assert counted(quality.recommendations[CPU])[("InPlace",)][0] == 2
    assert quality.missing == {("InPlace", CPU, "false"): 2}
    remember(quality, state, {}, {})
    quality.used(CPU, rows, np.full(4, 0.1))
    assert quality.missing == {("InPlace", CPU, "false"): 2}


def test_nothing_is_recommended_for_a_vpa_that_is_new() -> None:
    state, quality = ClusterState(), known([1.0])
    state.set_vpa(VPA, from_map({"app": "a"}), None)
    for number in range(20):
        state.set_pod(PodKey("ns", f"p{number}"), {"app": "a", "hash": str(number)}, ["c"], NOW)
    begin(quality, state, {VPA: "Initial"})
    quality.used(CPU, np.arange(20), np.ones(20))
    assert quality.missing == {("Initial", CPU, "false"): 19}
    assert counted(quality.recommendations[CPU]) == {("Initial",): (1, 1.0)}
