"""The probe machine: when it asks, and what outcomes make of it. S success, F failure, ? unknown, ! no question."""

import pytest

from podfit.decide.pod.probing import Action, ProbedInstance, ProbeKind, ProbeSettings, ProbeState, Result, due, heard

RUNS = ProbedInstance(id="a", running=True, since=100.0)
STARTS = ProbedInstance(id="a", running=True, since=100.0, started=False)
LETTERS = {Result.SUCCESS: "S", Result.FAILURE: "F", Result.UNKNOWN: "?", None: "-"}


def story(kind: ProbeKind, outcomes: str, *, failures: int = 3, successes: int = 1) -> str:
    """The result that holds after each outcome, and `!` from where nothing is asked any more."""
    settings = ProbeSettings(kind=kind, failure_threshold=failures, success_threshold=successes)
    seen = STARTS if kind is ProbeKind.STARTUP else RUNS
    state, told = ProbeState(), ""
    for letter in outcomes:
        state, action = due(state, seen, 200.0, settings)
        if action is not Action.ASK:
            return told + "!"
        state = heard(state, Result.SUCCESS if letter == "s" else Result.FAILURE, settings)
        told += LETTERS[state.result]
    return told


@pytest.mark.parametrize(
    ("kind", "failures", "successes", "outcomes", "results"),
    [
        (ProbeKind.READINESS, 3, 1, "fffsfffs", "FFFSSSFS"),
        (ProbeKind.READINESS, 1, 2, "ssfsss", "FSFFSS"),
        (ProbeKind.READINESS, 3, 1, "sffsff", "SSSSSS"),
        (ProbeKind.LIVENESS, 2, 1, "fsff", "SSSF"),
        (ProbeKind.LIVENESS, 2, 1, "fffff", "SF!"),
        (ProbeKind.STARTUP, 3, 1, "ffff", "??F!"),
        (ProbeKind.STARTUP, 3, 1, "ffs", "??S"),
    ],
)
def test_results(kind: ProbeKind, failures: int, successes: int, outcomes: str, results: str) -> None:
    assert story(kind, outcomes, failures=failures, successes=successes) == results


@pytest.mark.parametrize(
    ("kind", "seen", "action", "result"),
    [
        (ProbeKind.READINESS, ProbedInstance(), Action.WAIT, None),
        (ProbeKind.READINESS, ProbedInstance(over=True), Action.END, None),
        (ProbeKind.READINESS, RUNS, Action.ASK, Result.FAILURE),
        (ProbeKind.LIVENESS, RUNS, Action.ASK, Result.SUCCESS),
        (ProbeKind.LIVENESS, STARTS, Action.WAIT, Result.SUCCESS),
        (ProbeKind.STARTUP, STARTS, Action.ASK, Result.UNKNOWN),
        (ProbeKind.STARTUP, RUNS, Action.WAIT, Result.UNKNOWN),
        (ProbeKind.READINESS, ProbedInstance(id="a"), Action.WAIT, Result.FAILURE),
        (ProbeKind.READINESS, ProbedInstance(id="a", over=True), Action.END, Result.FAILURE),
        (ProbeKind.READINESS, ProbedInstance(id="a", running=True, was_well=True), Action.ASK, Result.SUCCESS),
        (ProbeKind.READINESS, ProbedInstance(id="a", running=True, ending=True), Action.ASK, Result.FAILURE),
        (ProbeKind.LIVENESS, ProbedInstance(id="a", running=True, ending=True), Action.END, Result.SUCCESS),
        (
            ProbeKind.STARTUP,
            ProbedInstance(id="a", running=True, started=False, ending=True),
            Action.END,
            Result.SUCCESS,
        ),
    ],
)
def test_before_the_first_probe(kind: ProbeKind, seen: ProbedInstance, action: Action, result: Result | None) -> None:
    state, found = due(ProbeState(), seen, 200.0, ProbeSettings(kind=kind))
    assert (found, state.result) == (action, result)


def test_the_initial_delay_counts_from_the_start_of_the_container() -> None:
    settings = ProbeSettings(kind=ProbeKind.READINESS, initial_delay=30)
    assert [due(ProbeState(), RUNS, now, settings)[1] for now in (129.0, 130.0)] == [Action.WAIT, Action.ASK]


def test_a_new_instance_ends_the_rest_of_one_that_failed() -> None:
    settings = ProbeSettings(kind=ProbeKind.LIVENESS, failure_threshold=1)
    state = heard(due(ProbeState(), RUNS, 200.0, settings)[0], Result.FAILURE, settings)
    assert due(state, RUNS, 300.0, settings)[1] is Action.WAIT
    state, action = due(state, ProbedInstance(id="b", running=True, since=210.0), 300.0, settings)
    assert (state.result, action) == (Result.SUCCESS, Action.ASK)
