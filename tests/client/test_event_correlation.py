"""Similar events are combined, repeated ones counted, and one object is not told of too often; in bounded memory."""

from itertools import count

from podfit.api.core.v1.references import ObjectReference
from podfit.client.event_correlation import BURST, COMBINED, REMEMBERED, SIMILAR, Correlator, EventDraft


def note(message: str, *, reason: str = "Failed", name: str = "web") -> EventDraft:
    return EventDraft(
        ObjectReference(kind="Pod", namespace="shop", name=name, uid="u1"), "Warning", reason, message, "", "7"
    )


def test_the_tenth_message_of_a_reason_and_those_after_it_are_one_event() -> None:
    correlator = Correlator()
    told = [correlator.combined(note(f"error {number}"), float(number)) for number in range(15)]
    assert [note.message for note, _ in told[: SIMILAR - 1]] == [f"error {number}" for number in range(SIMILAR - 1)]
    assert {note.message for note, _ in told[SIMILAR - 1 :]} == {f"{COMBINED}error {n}" for n in range(9, 15)}
    assert len({key for _, key in told}) == SIMILAR
    assert [correlator.count(key, "").count for _, key in told[SIMILAR - 1 :]] == [1, 2, 3, 4, 5, 6]


def test_another_reason_and_another_object_are_told_by_themselves() -> None:
    correlator = Correlator()
    for number in range(20):
        correlator.combined(note(f"error {number}"), 0.0)
    for other in (note("error 20", reason="Killing"), note("error 20", name="other")):
        assert correlator.combined(other, 0.0)[0] == other


def test_after_ten_quiet_minutes_messages_are_told_by_themselves_again() -> None:
    correlator = Correlator()
    for number in range(20):
        correlator.combined(note(f"error {number}"), 0.0)
    assert correlator.combined(note("error 20"), 600.0)[0].message == f"{COMBINED}error 20"
    assert correlator.combined(note("error 21"), 1200.1)[0].message == "error 21"


def test_an_object_is_told_of_25_times_and_then_every_five_minutes() -> None:
    correlator, pod = Correlator(), note("").regarding
    assert [correlator.may_tell(pod, 0.0) for _ in range(BURST + 2)] == [True] * BURST + [False] * 2
    assert [correlator.may_tell(pod, moment) for moment in (299.0, 300.0, 301.0, 900.0)] == [False, True, False, True]
    assert correlator.may_tell(note("", name="other").regarding, 0.0)


def test_a_flood_leaves_bounded_memory() -> None:
    correlator = Correlator()
    first = note("x", name="first")
    key = correlator.combined(first, 0.0)[1]
    correlator.count(key, "")
    for number in range(REMEMBERED):
        flood = note("x", name=f"p{number}")
        correlator.count(correlator.combined(flood, 0.0)[1], "")
    assert correlator.count(key, "").count == 1, "it was forgotten"
    messages = count()
    for _ in range(1000):
        correlator.combined(note(str(next(messages))), 0.0)
    combined, of = correlator.combined(note("last"), 0.0)
    assert (combined.message, of.message) == (f"{COMBINED}last", 0)
