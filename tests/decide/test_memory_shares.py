"""Who has room for what is under way, and who makes room."""

from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.memory_shares import QUIET, Granted, MakesRoom, Party, Refused, Shares, judge

SHARES = Shares(whole=100, party=50, connection=20)


def asked(parties: dict[str, Party], more: int = 10, connection: int = 0) -> object:
    return judge(SHARES, parties, "me", more=more, connection=connection)


def test_there_is_room() -> None:
    assert asked({}) == Granted()
    assert asked({"me": Party(40), "other": Party(50)}) == Granted()


def test_a_connection_and_a_party_have_no_more_than_their_shares() -> None:
    assert asked({"me": Party(20)}, connection=11) == Refused()
    assert asked({"me": Party(41, quiet=QUIET / 2)}) == Refused()
    assert asked({"me": Party(41, quiet=QUIET), "other": Party(50, quiet=60.0)}) == MakesRoom("me")


def test_who_is_quiet_makes_room_first_and_then_who_holds_more() -> None:
    assert asked({"large": Party(50), "quiet": Party(5, quiet=QUIET), "me": Party(40)}) == MakesRoom("quiet")
    assert asked({"large": Party(50), "quiet": Party(45, quiet=QUIET / 2)}) == MakesRoom("large")
    assert asked({"a": Party(33), "b": Party(33), "me": Party(33)}) == Refused()


@given(
    others=st.lists(st.tuples(st.integers(1, 50), st.floats(0, 100)), max_size=8),
    own=st.integers(0, 39),
    quiet=st.floats(0, 100),
)
def test_nobody_is_refused_for_what_another_holds_beyond_them(
    others: list[tuple[int, float]], own: int, quiet: float
) -> None:
    """Whoever holds less than every other who holds something, and less than a share, always gets room."""
    parties = {f"other{number}": Party(*other) for number, other in enumerate(others)} | {"me": Party(own, quiet)}
    verdict = asked(parties)
    if all(held > own + 10 for held, _ in others):
        assert verdict != Refused()
    if isinstance(verdict, MakesRoom):
        assert parties[verdict.party].held
