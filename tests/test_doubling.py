"""No decoder and no matcher stops the event loop, whatever it is given: sizes are doubled up to a request's bound."""

from collections.abc import Callable

import pytest

from support.doubling import ELSEWHERE, SHAPES, places, sizes, stall_ms
from support.turns import TURN_MS

SHOWN = 5
"""Of the places, the worst."""
Figure = Callable[[str, object], None]


def test_whatever_decodes_or_matches_is_given_something() -> None:
    """A new function of such a name needs a shape in `support/doubling.py`, or a reason why it is asked elsewhere."""
    found = set(places())
    assert sorted(found - SHAPES.keys() - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - found) == [], "it is there no more"
    assert len(found) > 60


@pytest.mark.parametrize("place", SHAPES)
async def test_the_most_that_a_request_brings(place: str) -> None:
    for shape in SHAPES[place]:
        stall = await stall_ms(shape.make(shape.most))
        assert stall < TURN_MS, f"{shape.name} of {shape.most}: {stall:.0f} ms"


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_sizes_doubled(figure: Figure) -> None:
    """Every decoder, every matcher and every walk that is in the table, found by its name, gets the worst shapes that
    are known, in sizes doubled up to what a request may bring. None keeps the event loop for 100 ms of CPU. The five
    worst are named."""
    worst = dict[str, float]()
    for place, shapes in SHAPES.items():
        for shape in shapes:
            for size in sizes(shape.most):
                stall = await stall_ms(shape.make(size))
                assert stall < TURN_MS, f"{place} {shape.name} of {size}: {stall:.0f} ms"
                worst[place] = max(worst.get(place, 0.0), stall)
    figure("shapes", sum(map(len, SHAPES.values())))
    for place, stall in sorted(worst.items(), key=lambda item: -item[1])[:SHOWN]:
        figure(place, f"{stall:.0f} ms")
