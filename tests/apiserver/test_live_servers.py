"""Which servers on one store count as alive."""

from podfit.apiserver.housekeeping.server_leases import DEAD_SECONDS, RENEW_SECONDS, Sighting, alive, sighted


def test_who_renews_stays_and_who_does_not_leaves() -> None:
    known = sighted({}, {"a:1": 5, "b:1": 6}, 100.0)
    assert alive(known, 100.0) == ("a:1", "b:1")
    known = sighted(known, {"a:1": 7, "b:1": 6}, 100.0 + RENEW_SECONDS)
    assert known == {"a:1": Sighting(7, 110.0), "b:1": Sighting(6, 100.0)}
    assert alive(known, 100.0 + DEAD_SECONDS - 0.1) == ("a:1", "b:1")
    assert alive(known, 100.0 + DEAD_SECONDS) == ("a:1",)


def test_who_comes_back_begins_anew() -> None:
    known = sighted({"a:1": Sighting(5, 0.0)}, {"a:1": 9}, 50.0)
    assert alive(known, 60.0) == ("a:1",)
    assert sighted(known, {}, 60.0) == {}
