"""Which images go, in which order, and what is said when that is not enough."""

import pytest

from podfit.decide.node.image_gc import (
    LONG_AGO,
    ImagePolicy,
    ImageRecord,
    StoredImage,
    look,
    not_enough,
    removable,
    to_free,
    too_old,
)
from podfit.decide.node.pressure import Observation

POLICY = ImagePolicy()
GI = 1 << 30


def record(name: str, *, first: float = LONG_AGO, last: float = LONG_AGO, **said: bool) -> ImageRecord:
    return ImageRecord(StoredImage(name, 10, said.get("kept", False)), first, last, said.get("used", False))


def names(records: list[ImageRecord]) -> list[str]:
    return [record.image.id for record in records]


@pytest.mark.parametrize(
    ("records", "order"),
    [
        ([record("b", last=20), record("a", last=30), record("c")], ["c", "b", "a"]),
        ([record("late", first=50), record("early", first=10)], ["early", "late"]),
        ([record("used", used=True), record("pinned", kept=True), record("free")], ["free"]),
        ([record("new", first=881), record("old", first=880)], ["old"]),
    ],
)
def test_who_may_go(records: list[ImageRecord], order: list[str]) -> None:
    assert names(removable({record.image.id: record for record in records}, POLICY, 1000.0)) == order


@pytest.mark.parametrize(("available", "amount"), [(16, 0), (15, 5), (5, 15), (0, 20), (200, 0)])
def test_how_much(available: int, amount: int) -> None:
    assert to_free(Observation(available, 100), POLICY) == amount


def test_a_high_threshold_of_100_is_off() -> None:
    assert to_free(Observation(0, 100), ImagePolicy(high=100)) == 0


def test_what_looks_remember() -> None:
    first = look(None, [StoredImage("a", 1), StoredImage("b", 2)], {"a"}, 100.0)
    assert [(record.first_seen, record.last_used) for record in first.values()] == [
        (LONG_AGO, 100.0),
        (LONG_AGO, LONG_AGO),
    ]
    second = look(first, [StoredImage("a", 1), StoredImage("c", 3)], set(), 200.0)
    assert {name: (record.first_seen, record.last_used, record.used) for name, record in second.items()} == {
        "a": (LONG_AGO, 100.0, False),
        "c": (200.0, LONG_AGO, False),
    }


def test_images_that_nobody_used_for_longer_than_they_may_be() -> None:
    policy = ImagePolicy(most_age=600)
    records = {"a": record("a", last=300), "b": record("b", last=500), "c": record("c")}
    assert names(too_old(records, policy, 1000.0, began=0.0)) == ["c", "a"]
    assert too_old(records, policy, 1000.0, began=400.0) == [], "it has not run for as long"
    assert too_old(records, POLICY, 1000.0, began=0.0) == []


def test_the_message_of_a_disk_that_stays_full() -> None:
    text = not_enough(Observation(GI, 20 * GI), 7)
    assert "image filesystem (95% of 20.0 GiB used)" in text
    assert "(freed 7 bytes)" in text


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (POLICY, ""),
        (ImagePolicy(high=80), "imageGCLowThresholdPercent 80: must be less than imageGCHighThresholdPercent 80"),
        (ImagePolicy(low=-1), "imageGCLowThresholdPercent -1: must be between 0 and 100"),
        (ImagePolicy(most_age=60), "imageMaximumGCAge 60s: must be 0 or more than imageMinimumGCAge"),
        (ImagePolicy(least_age=-1), "imageMinimumGCAge -1s: must not be negative"),
    ],
)
def test_what_is_no_policy(policy: ImagePolicy, problem: str) -> None:
    assert policy.problem == problem
