"""What a wait that was in vain says."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.eventually import PATIENCE, Steady, eventually, eventually_async, logged, process_ended
from support.up import patient


def test_what_is_seen_is_given_once_it_holds() -> None:
    seen = iter([None, 0, 1, 2])
    assert eventually(lambda: next(seen), lambda number: number > 1, within=10, what="two", every=0) == 2


def test_what_was_last_seen_is_said() -> None:
    with pytest.raises(AssertionError) as failed:
        eventually(lambda: {"phase": "Pending"}, lambda _: False, within=0, what="the pod runs", told=lambda: "the log")
    assert str(failed.value) == "never within 0 s: the pod runs; last seen: {'phase': 'Pending'}\nthe log"


async def test_in_the_event_loop_too() -> None:
    async def look() -> str:
        return "empty"

    with pytest.raises(AssertionError, match="never within 0 s: it is full; last seen: empty"):
        await eventually_async(look, "full".__eq__, within=0, what="it is full")


def test_steady_is_the_same_so_many_times_in_a_row() -> None:
    steady = Steady(3)
    assert [steady(seen) for seen in "aabbba"] == [False, False, False, False, True, False]


def test_a_process_that_ends_before_it_says_so_is_not_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for said, fails in (("begins\n  ready now", False), ("begins\nno", True)):
        with (
            log.open("w") as file,
            subprocess.Popen([sys.executable, "-c", f"print({said!r})"], stdout=file) as process,
        ):
            process.wait(30)
            process_ended(process.pid, within=0)
            if fails:
                with pytest.raises(AssertionError, match="ended with 0 before it said   ready :\nbegins\nno"):
                    logged(log, process, "  ready ", within=30)
            else:
                assert logged(log, process, "  ready ", within=30) == "  ready now"


@pytest.mark.parametrize(
    "argument", ["--timeout=50ms", "--timeout", "--timeout=", "--for=create", "--request-timeout=5s"]
)
def test_only_whole_seconds_of_kubectl_are_made_longer(argument: str) -> None:
    assert patient("--timeout=30s") == f"--timeout={30 * PATIENCE:g}s"
    assert patient(argument) == argument
