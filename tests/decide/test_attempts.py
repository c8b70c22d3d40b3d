"""Who is suspected, tried alone and set aside after a node ended in the middle of its work."""

import pytest

from podfit.decide.pod.attempts import AttemptRecord, AttemptVerdict, Mark, after_crash, after_stop, verdict

STARTED, SUSPECT, ALONE, ASIDE = Mark.STARTED, Mark.SUSPECT, Mark.ALONE, Mark.ASIDE


def notes(**marks: Mark) -> dict[str, AttemptRecord]:
    return {uid: AttemptRecord("1", mark) for uid, mark in marks.items()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"a": STARTED, "b": STARTED}, {"a": SUSPECT, "b": SUSPECT}),
        ({"a": ALONE, "b": SUSPECT}, {"a": ASIDE, "b": SUSPECT}),
        ({"a": ALONE, "b": STARTED, "c": ASIDE}, {"a": SUSPECT, "b": SUSPECT, "c": ASIDE}),
    ],
)
def test_a_crash(before: dict[str, Mark], after: dict[str, Mark]) -> None:
    assert after_crash(notes(**before)) == notes(**after)


def test_a_stop_accuses_nobody_and_acquits_nobody() -> None:
    stood = notes(a=STARTED, b=ALONE, c=SUSPECT, d=ASIDE)
    assert after_stop(stood) == notes(b=SUSPECT, c=SUSPECT, d=ASIDE)


@pytest.mark.parametrize(
    ("mark", "form", "expected"),
    [
        (SUSPECT, "1", AttemptVerdict.TRY_ALONE),
        (SUSPECT, "2", AttemptVerdict.TRY_ALONE),
        (ASIDE, "1", AttemptVerdict.SET_ASIDE),
        (ASIDE, "2", AttemptVerdict.TRY_ALONE),
        (ASIDE, "1-", AttemptVerdict.TRY_ALONE),
        (STARTED, "1", AttemptVerdict.RUN),
    ],
)
def test_the_verdict(mark: Mark, form: str, expected: AttemptVerdict) -> None:
    assert verdict(AttemptRecord("1", mark), form) is expected
    assert verdict(None, form) is AttemptVerdict.RUN


@pytest.mark.parametrize("guilty", range(1, 4))
@pytest.mark.parametrize("pods", range(4, 7))
def test_whoever_ends_the_node_is_found_and_nobody_else(guilty: int, pods: int) -> None:
    """The first `guilty` of the pods end the node whenever they are worked on."""
    names = [f"p{number}" for number in range(pods)]
    bombs, known, starts = set(names[:guilty]), notes(), 0
    while True:
        starts += 1
        assert starts < 3 + guilty * 2
        verdicts = {name: verdict(known.get(name), "1") for name in names}
        begun = [name for name in names if verdicts[name] is AttemptVerdict.RUN]
        stood = {**known, **notes(**dict.fromkeys(begun, STARTED))}
        if bombs & set(begun):
            known = after_crash(stood)
            continue
        stood = {name: note for name, note in stood.items() if name not in begun}
        died = False
        for name in names:
            if verdicts[name] is AttemptVerdict.TRY_ALONE:
                stood[name] = AttemptRecord("1", ALONE)
                if name in bombs:
                    died = True
                    break
                del stood[name]
        if not died:
            break
        known = after_crash(stood)
    assert {name for name in names if verdict(stood.get(name), "1") is AttemptVerdict.SET_ASIDE} == bombs
