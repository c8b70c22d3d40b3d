"""The bank of histograms against recorded ones, and against its own rules."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.autoscaling.buckets import CPU_BUCKETS, MEMORY_BUCKETS, Buckets, lowest
from podfit.decide.autoscaling.checkpoints import load, saved
from podfit.decide.autoscaling.histograms import HistogramBank
from support.golden import Case
from support.vpa_golden import replay

DAY = 86_400.0
NOW = 1_770_000_000.0
FIRST = np.array([0])


def one(value: float) -> Any:
    return np.array([float(value)])


def applied(bank: HistogramBank, ops: list[Case]) -> HistogramBank:
    """All of the operations but probes, on a bank of one row."""
    for op in ops:
        match op["op"]:
            case "add":
                bank.add(FIRST, one(op["v"]), op["w"], one(op["t_ns"] / 1e9))
            case "sub":
                bank.subtract(FIRST, one(op["v"]), op["w"], one(op["t_ns"] / 1e9))
            case "merge":
                both = joined(bank, applied(HistogramBank(bank.buckets, bank.half_life, 1), op["ops"]))
                bank = both.merged(np.array([0, 1]), FIRST)
            case "roundtrip":
                (checkpoint,) = saved(bank)
                bank = HistogramBank(bank.buckets, bank.half_life, 1)
                load(bank, 0, checkpoint)
    return bank


def joined(*banks: HistogramBank) -> HistogramBank:
    result = HistogramBank(banks[0].buckets, banks[0].half_life)
    for name in ("weights", "total", "reference", "least", "most"):
        setattr(result, name, np.concatenate([getattr(bank, name) for bank in banks], axis=-1))
    result.size = sum(bank.size for bank in banks)
    return result


def assert_as(bank: HistogramBank, probe: Case) -> None:
    shares = sorted(probe["percentiles"])
    found = bank.percentiles([float(share) for share in shares])[:, 0]
    assert found == pytest.approx([probe["percentiles"][share] for share in shares], rel=1e-9)
    assert bank.is_empty()[0] == probe["is_empty"]
    assert bank.total[0] == pytest.approx(probe["total_weight"], rel=1e-9)
    assert (bank.least[0], bank.most[0]) == (probe["min_bucket"], probe["max_bucket"])
    reference = probe.get("reference_t_ns")
    assert bank.reference[0] == (-math.inf if reference is None else reference / 1e9)
    weights = {str(index): bank.weights[index, 0] for index in bank.weights[:, 0].nonzero()[0]}
    assert weights == pytest.approx(probe["bucket_weights"], rel=1e-9)
    (checkpoint,) = saved(bank)
    recorded = probe["checkpoint"]
    assert checkpoint.bucket_weights == recorded["bucketWeights"]
    assert checkpoint.reference_timestamp == recorded.get("referenceTimestamp")
    assert checkpoint.total_weight == pytest.approx(recorded["totalWeight"], rel=1e-9)


@pytest.mark.row("V-010", "V-011", "V-012", "V-014", "V-015")
@replay("histograms")
def test_vpa_histograms_are_as_recorded(case: Case) -> None:
    options = case["options"]
    buckets = Buckets(options["max_value"], options["first_bucket_size"], options["ratio"], options["epsilon"])
    assert buckets.count == case["num_buckets"]
    bank, done = HistogramBank(buckets, case["half_life_seconds"], 1), list[Case]()
    probes = iter(case["expect"])
    for op in case["ops"]:
        if op["op"] == "probe":
            bank, done = applied(bank, done), []
            assert_as(bank, next(probes))
        else:
            done.append(op)
    assert next(probes, None) is None


@pytest.mark.row("V-010")
@given(st.floats(0, 2e12))
def test_a_search_among_borders_answers_as_the_formula(value: float) -> None:
    for buckets in (CPU_BUCKETS, MEMORY_BUCKETS):
        found = int(np.searchsorted(lowest(buckets), value, side="right")) - 1
        assert found == buckets.index(value)


@pytest.mark.row("V-010")
def test_both_resources_have_176_buckets_and_values_on_borders_find_theirs() -> None:
    for buckets in (CPU_BUCKETS, MEMORY_BUCKETS):
        assert buckets.count == 176
        for index in range(176):
            for value in (buckets.start(index), math.nextafter(buckets.start(index), 0), lowest(buckets)[index]):
                found = int(np.searchsorted(lowest(buckets), value, side="right")) - 1
                assert found == buckets.index(value)


def filled(samples: list[tuple[float, float]]) -> HistogramBank:
    """A bank of one row."""
    bank = HistogramBank(CPU_BUCKETS, DAY, 1)
    for value, age in samples:
        bank.add(FIRST, one(value), 0.1, one(NOW - age))
    return bank


SAMPLES = st.lists(st.tuples(st.floats(0, 2000), st.floats(0, 200 * DAY)), max_size=8)


@pytest.mark.row("V-013")
@given(st.lists(SAMPLES, min_size=2, max_size=4))
def test_merging_does_not_depend_on_the_order(every: list[list[tuple[float, float]]]) -> None:
    bank = joined(*map(filled, every))
    order = np.arange(len(every))
    one_way, other_way = bank.merged(order, FIRST), bank.merged(order[::-1], FIRST)
    assert one_way.weights == pytest.approx(other_way.weights, rel=1e-12)
    assert one_way.total == pytest.approx(other_way.total, rel=1e-12)
    assert (one_way.reference, one_way.least, one_way.most) == (other_way.reference, other_way.least, other_way.most)


@pytest.mark.row("V-013")
def test_many_groups_are_merged_as_each_alone() -> None:
    every = [filled([(0.1 * number, number * 30 * DAY)]) for number in range(6)]
    bank = joined(*every)
    together = bank.merged(np.arange(6), np.array([0, 1, 3]))
    for row, group in enumerate(([0], [1, 2], [3, 4, 5])):
        alone = bank.merged(np.array(group), FIRST)
        assert (together.weights[:, row] == alone.weights[:, 0]).all()
        assert together.least[row] == alone.least[0]
        assert together.most[row] == alone.most[0]


@pytest.mark.row("V-013")
def test_merging_does_not_change_what_is_merged() -> None:
    bank = joined(*(filled([(0.1 * number, number * 3 * DAY)]) for number in range(3)))
    before = bank.percentiles([0.1, 0.5, 0.9])
    bank.merged(np.arange(3), FIRST)
    assert len(set(bank.reference)) == 1
    assert (bank.percentiles([0.1, 0.5, 0.9]) == before).all()


def test_many_rows_at_once_are_as_one_after_the_other() -> None:
    rows = np.array([0, 1, 1, 2, 0])
    values = np.array([0.5, 0.25, 3.0, 0.001, 7.0])
    times = NOW + np.array([0.0, 60.0, 120.0, 180.0, 240.0])
    together, apart = HistogramBank(CPU_BUCKETS, DAY, 3), HistogramBank(CPU_BUCKETS, DAY, 3)
    together.add(rows, values, 0.1, times)
    for row, value, time in zip(rows, values, times, strict=True):
        apart.add(np.array([row]), one(value), 0.1, one(time))
    for name in ("weights", "total", "reference", "least", "most"):
        assert (getattr(together, name) == getattr(apart, name)).all()


@pytest.mark.row("V-015")
@given(st.lists(st.tuples(st.floats(0, 2000), st.floats(0, 8 * DAY)), max_size=8))
def test_what_was_added_can_be_taken_back_and_leaves_nothing_negative(samples: list[tuple[float, float]]) -> None:
    bank = filled(samples)
    for value, age in samples:
        bank.subtract(FIRST, one(value), 0.1, one(NOW - age))
        left = bank.weights[bank.weights > 0]
        assert (left >= CPU_BUCKETS.epsilon).all()
        assert (bank.weights >= 0).all()
        assert bank.total[0] >= 0


@pytest.mark.row("V-011")
def test_percentiles_are_upper_borders_and_the_last_bucket_answers_its_start() -> None:
    bank = HistogramBank(CPU_BUCKETS, DAY, 3)
    bank.add(np.array([0, 1]), np.array([0.001, 1e6]), 1.0, np.array([NOW, NOW]))
    assert bank.percentiles([0.5])[0].tolist() == [0.01, CPU_BUCKETS.start(175), 0.0]


@pytest.mark.row("V-012")
def test_the_reference_is_a_whole_number_of_half_lives_since_the_year_one() -> None:
    week = HistogramBank(CPU_BUCKETS, 7 * DAY, 1)
    week.add(FIRST, one(1), 1.0, one(NOW))
    assert (week.reference[0] + 62_135_596_800) % (7 * DAY) == 0
    assert abs(week.reference[0] - NOW) <= 3.5 * DAY
    before = week.reference[0]
    week.add(FIRST, one(1), 1.0, one(before + 700 * DAY))
    assert week.reference[0] == before
    week.add(FIRST, one(1), 1.0, one(before + 701 * DAY))
    assert week.reference[0] == before + 700 * DAY + (7 * DAY if 701 % 7 >= 3.5 else 0)


@pytest.mark.row("V-014")
@pytest.mark.parametrize(
    ("weights", "total", "text"),
    [({0: 1}, -1.0, "negative weight"), ({176: 1}, 1.0, "bucket 176"), ({-1: 1}, 1.0, "bucket -1")],
)
def test_a_checkpoint_that_is_wrong_is_refused_and_changes_nothing(
    weights: dict[int, int], total: float, text: str
) -> None:
    bank = filled([(1.0, 0.0)])
    before = bank.weights.copy(), bank.total.copy(), bank.reference.copy()
    with pytest.raises(ValueError, match=text):
        bank.load(0, weights, total, NOW)
    assert (bank.weights == before[0]).all()
    assert (bank.total, bank.reference) == before[1:]


def test_rows_are_added_and_cleared() -> None:
    bank = filled([(1.0, 0.0)])
    bank.extend(3)
    bank.add(np.array([2]), one(5), 1.0, one(NOW))
    bank.clear(FIRST)
    assert bank.is_empty().tolist() == [True, True, False]
    assert bank.percentiles([1.0])[0, :2].tolist() == [0.0, 0.0]
