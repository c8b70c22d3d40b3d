"""The delays between restarts: at once, then 10 s doubling to 5 min, forgotten after 10 quiet minutes."""

import pytest

from podfit.decide.lifecycle.backoff import Backoff, duration, tried


def _tried(*times: float, form: str = "") -> Backoff:
    backoff = None
    for now in times:
        backoff = tried(backoff, now, form)
    assert backoff is not None
    return backoff


def test_each_try_doubles_the_delay_up_to_five_minutes() -> None:
    backoff, now, delays = tried(None, 1000.0), 1000.0, [0.0]
    for _ in range(7):
        now += 1
        wait = backoff.remaining(now, now)
        delays.append(wait)
        now += wait
        backoff = tried(backoff, now)
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300]


def test_the_wait_is_counted_from_the_failure() -> None:
    backoff = tried(None, 100)
    assert backoff.remaining(failed_at=104, now=110) == 4
    assert backoff.remaining(failed_at=104, now=120) == 0


@pytest.mark.parametrize("jump", [-86400, -3600, 3600, 86400])
def test_a_time_of_day_that_was_set_makes_no_wait_longer(jump: float) -> None:
    backoff = tried(None, 100_000)
    assert backoff.remaining(failed_at=100_004, now=100_005 + jump) <= 10


def test_ten_quiet_minutes_forgive() -> None:
    backoff = _tried(0, 1, 2, 3)
    assert backoff.remaining(failed_at=604, now=604) == 0
    assert tried(backoff, 604).delay == 10


def test_another_form_starts_at_once_and_then_as_any_other() -> None:
    backoff = _tried(0, 1, 2, form="64Mi")
    assert backoff.remaining(failed_at=2, now=3, form="64Mi") > 0
    assert backoff.remaining(failed_at=2, now=3, form="128Mi") == 0
    backoff = tried(backoff, 3, "128Mi")
    assert backoff.remaining(failed_at=4, now=4, form="128Mi") == 10


def test_delays_are_written_as_upstream_writes_them() -> None:
    assert [duration(seconds) for seconds in (10, 40, 80, 160, 300)] == ["10s", "40s", "1m20s", "2m40s", "5m0s"]


def test_a_failure_that_is_ahead_by_a_clocks_resolution_waits_as_any_other() -> None:
    backoff = tried(None, 100)
    assert backoff.remaining(failed_at=104.0000003, now=104) == 10
    assert backoff.remaining(failed_at=115, now=104) == 0
