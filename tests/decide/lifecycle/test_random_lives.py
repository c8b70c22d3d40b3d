"""Random lives: what must hold of every effect, and at rest; a kill after any effect changes nothing in the end."""

from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from decide.lifecycle.random_lives import ENDS, FAULTS, KILLS, MEANWHILE, Command, Life, live, pods
from podfit.api.core.v1.pods.phase import ENDED

COURSES = st.lists(st.one_of(MEANWHILE, MEANWHILE, FAULTS, KILLS), min_size=3, max_size=25)
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a life is long, and a failure names the kill
QUIET = st.lists(MEANWHILE, max_size=3)


@settings(max_examples=40, deadline=None, phases=NO_SHRINKING)
@given(words=pods(), commands=COURSES)
def test_a_life_comes_to_rest_as_it_should(words: str, commands: list[Command]) -> None:
    live(words, commands)


@settings(max_examples=20, deadline=None, phases=NO_SHRINKING)
@given(words=pods(), commands=COURSES, end=ENDS)
def test_a_life_that_is_ended_leaves_nothing(words: str, commands: list[Command], end: Command) -> None:
    life = live(words, [*commands, ("mend", 0, 0), end], eagerly=True)
    assert life.deleted or life.life.gone or life.status.phase in ENDED


@settings(max_examples=4, deadline=None, phases=NO_SHRINKING)
@given(words=pods(), commands=QUIET, end=st.booleans())
def test_a_kill_after_any_effect_changes_nothing_in_the_end(words: str, commands: list[Command], end: bool) -> None:
    check_kills(words, [*commands, *([("delete", 0, 1)] if end else [])])


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_a_kill_after_every_effect_of_many_lives(figure: Callable[[str, object], None]) -> None:
    """Random pods and lives; the kubelet is killed after each effect in turn, and the outcome is that of no kill."""
    kills = 0

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(words=pods(), commands=st.lists(MEANWHILE, max_size=6), end=st.booleans())
    def lives(words: str, commands: list[Command], end: bool) -> None:
        nonlocal kills
        kills += check_kills(words, [*commands, *([("delete", 0, 1)] if end else [])])

    lives()
    figure("lives", 60)
    figure("kills", kills)


def check_kills(words: str, commands: list[Command]) -> int:
    """How many kills there were."""
    undisturbed = live(words, commands, eagerly=True)
    for place in range(1, len(undisturbed.effects) + 1):
        disturbed = live(words, commands, killed_at=place, eagerly=True)
        assert _outcome(disturbed) == _outcome(undisturbed), f"killed after effect {place}"
    return len(undisturbed.effects)


def _outcome(life: Life) -> tuple[object, ...]:
    codes = [
        (status.name, status.state.terminated and status.state.terminated.exit_code, status.restart_count)
        for status in (*life.status.init_container_statuses, *life.status.container_statuses)
    ]
    return life.status.phase, life.running_names(), codes, life.deleted, life.cgroup, min(len(life.sandboxes), 2)


def test_a_turn_that_would_never_end_is_noticed() -> None:
    life = Life(live("c1 restart=Always", []).pod)
    life.fails["list"] = "no"
    with pytest.raises(AssertionError, match="never comes to rest"):
        life.settle(turns=20)
