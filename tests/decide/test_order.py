"""Who is tried first."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.resize.queue_order import QueueKey, queue_key
from support.placed import placed, resized
from support.pods import container, needs, pod

T0 = datetime(2026, 1, 1, tzinfo=UTC)
ROOM = {"cpu": "1", "memory": "1Gi"}


def key(*, to: str = "2", priority: int | None = None, guaranteed: bool = False, waited: int | None = 0) -> QueueKey:
    old = placed(pod(container("c1", ROOM, ROOM if guaranteed else None), priority=priority))
    new = {**ROOM, "cpu": to}
    since = None if waited is None else T0 - timedelta(seconds=waited)
    return queue_key(resized(old, c1=needs(new, new if guaranteed else None)), old, since)


@pytest.mark.row("R-104", "R-105", "R-106", "R-107")
def test_order() -> None:
    assert key(to="500m", priority=0) < key(to="2", priority=1000)
    assert key(to="1") < key(to="2")  # what asks for no more is no increase
    assert key(priority=10, waited=0) < key(priority=5, waited=100) < key(waited=100)  # R-105; none is 0
    assert key(guaranteed=True, waited=0) < key(waited=100)
    assert key(waited=10) < key(waited=5) < key(waited=None)


KEYS = st.builds(
    key,
    to=st.sampled_from(["500m", "1", "2"]),
    priority=st.sampled_from([None, 0, 7]),
    guaranteed=st.booleans(),
    waited=st.sampled_from([None, 0, 5]),
)


@given(KEYS, KEYS, KEYS)
def test_it_is_an_order(a: QueueKey, b: QueueKey, c: QueueKey) -> None:
    assert sum((a < b, a == b, a > b)) == 1
    assert not (a <= b <= c) or a <= c
