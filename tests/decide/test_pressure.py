"""Eviction thresholds: what they read as, when they are met, and how long a condition stays."""

import pytest

from podfit.decide.node.pressure import CALM, DEFAULT, BadThreshold, Observation, Threshold, parse

MI = 1 << 20


def test_the_defaults_are_upstreams() -> None:
    assert set(parse(DEFAULT)) == {
        Threshold("memory.available", amount=100 * MI),
        Threshold("nodefs.available", share=0.10),
        Threshold("nodefs.inodesFree", share=0.05),
        Threshold("imagefs.available", share=0.15),
        Threshold("imagefs.inodesFree", share=0.05),
    }


def test_a_share_of_nothing_or_all_is_no_threshold() -> None:
    assert parse("nodefs.available<0%,imagefs.available<100%") == ()
    assert parse("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "memory.available",
        "memory<1Mi",
        "memory.available<",
        "memory.available<x%",
        "memory.available<101%",
        "memory.available<-1",
        "memory.available<0",
        "memory.available>1Mi",
        "memory.available<-1%",
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(BadThreshold, match="cannot read"):
        parse(text)


@pytest.mark.parametrize(
    ("signal", "available", "capacity", "condition"),
    [
        ("memory.available", 100 * MI - 1, 8192 * MI, ("MemoryPressure",)),
        ("memory.available", 100 * MI, 8192 * MI, ()),
        ("nodefs.available", 99, 1000, ("DiskPressure",)),
        ("nodefs.available", 100, 1000, ()),
        ("imagefs.inodesFree", 49, 1000, ("DiskPressure",)),
        ("pid.available", 1, 1000, ()),
    ],
)
def test_conditions_come_at_their_thresholds(
    signal: str, available: int, capacity: int, condition: tuple[str, ...]
) -> None:
    seen = {signal: Observation(available, capacity)}
    assert CALM.look(parse(DEFAULT), seen, 0.0).conditions == condition


def test_processes_count_when_asked_to() -> None:
    seen = {"pid.available": Observation(5, 1000), "memory.available": Observation(1, 1000)}
    assert CALM.look(parse("pid.available<10,memory.available<1%"), seen, 0.0).conditions == (
        "MemoryPressure",
        "PIDPressure",
    )


def test_a_condition_stays_for_five_minutes_after_its_threshold_was_last_met() -> None:
    low, fine = ({"memory.available": Observation(available, 8192 * MI)} for available in (0, 4096 * MI))
    limits = parse(DEFAULT)
    pressed = CALM.look(limits, low, 0.0).look(limits, low, 100.0)
    assert pressed.look(limits, fine, 399.0).conditions == ("MemoryPressure",)
    assert pressed.look(limits, fine, 400.0).conditions == ()
    assert pressed.look(limits, {}, 399.0).conditions == ("MemoryPressure",), "what is not seen says nothing"
