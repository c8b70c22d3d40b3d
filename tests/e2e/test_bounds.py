"""A real server under attack: no request stops its event loop for 100 ms of CPU, nor makes its process grow.

The bounds themselves, what is told beyond them, and where they are tested one by one: docs/bounds.md.
"""

import asyncio
from collections.abc import Iterator

import pytest

from support.attacks import ANONYMOUS, OBJECTS, SELECTORS, Attack
from support.bounded import Victim, bounded
from support.turns import REFERENCE_MS, burn, worst_ms

ATTACKS = ANONYMOUS | SELECTORS | OBJECTS
SETTLE_SECONDS = 0.5  # for what an object has scheduler, controllers and node do


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with bounded(tmp_path_factory.mktemp("victim") / "cluster", node="simulated") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


@pytest.mark.parametrize(("attack", "status"), ATTACKS.values(), ids=ATTACKS)
def test_no_request_stops_the_server(
    victim: Victim, attack: Attack, status: int, request: pytest.FixtureRequest
) -> None:
    answered: list[int] = []
    made = [attack for attack, _ in OBJECTS.values()]
    victim.measure(
        request.node.callspec.id,
        lambda: answered.extend(attack(victim)),
        settle=SETTLE_SECONDS if attack in made else 0.0,
    ).check()
    assert set(answered) == {status}


async def test_a_long_turn_is_seen() -> None:
    """Work that gives others their turn is not counted as one."""

    async def in_slices() -> None:
        for _ in range(10):
            burn(6)
            await asyncio.sleep(0.005)

    async def at_once() -> None:
        burn(60)

    least, most = 3 * REFERENCE_MS, 30 * REFERENCE_MS
    assert least < await worst_ms(in_slices, most=most) < most < await worst_ms(at_once, most=most)
