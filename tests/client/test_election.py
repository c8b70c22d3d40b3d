"""Who leads, by a Lease, in virtual time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease
from podfit.client.election import Election, LostLease, NewerLease, is_renewed, told_by_holder
from podfit.client.rest import Client
from podfit.client.transport import Local
from support.candidate import NAME, Candidate
from support.clock import FakeClock
from support.server import ADMIN, Server, running_server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(tmp_path, clock=clock) as made:
        yield made


async def lease(server: Server) -> Lease:
    return await server.client.get(Lease, NAME, "kube-system")


@pytest.mark.row("V-123")
async def test_one_works_and_the_other_waits(server: Server, clock: FakeClock) -> None:
    first = Candidate(server, clock, "a")
    await first.led.wait()
    second = Candidate(server, clock, "b")
    for _ in range(20):
        first.renewed.clear()
        await clock.advance(2)
        await first.renewed.wait()
        assert (first.working, second.working) == (1, 0)
    spec = (await lease(server)).spec
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("a", 15, 0)
    assert spec.acquire_time != spec.renew_time
    await first.end()
    await second.end()


async def test_what_a_holder_tells_of_itself_ends_with_its_hold(server: Server, clock: FakeClock) -> None:
    """Another library, and one that has nothing to tell, leave the annotations as they are."""
    first = Election(server.client, clock, name=NAME, identity="a", told={"example.com/threads": "2"})
    assert await first.hold()
    held = await lease(server)
    assert told_by_holder(held)["example.com/threads"] == "2"
    assert is_renewed(held, clock.now())
    await clock.advance(14)
    assert is_renewed(held, clock.now())
    await clock.advance(2)
    assert not is_renewed(held, clock.now())
    second = Election(server.client, clock, name=NAME, identity="b")
    assert not await second.hold(), "it has not seen it for as long yet"
    await clock.advance(16)
    assert await second.hold()
    assert (await lease(server)).metadata.annotations["example.com/threads"] == "2"
    assert told_by_holder(await lease(server)) == {}
    assert not await first.hold()


@pytest.mark.row("V-123")
async def test_a_graceful_end_hands_over_at_once(server: Server, clock: FakeClock) -> None:
    first = Candidate(server, clock, "a")
    await first.led.wait()
    second = Candidate(server, clock, "b")
    await clock.advance(1)
    await first.end()
    assert (await lease(server)).spec.holder_identity == ""
    await clock.advance(2)
    await second.led.wait()
    spec = (await lease(server)).spec
    assert (spec.holder_identity, spec.lease_transitions) == ("b", 1)
    await second.end()


@pytest.mark.parametrize("way", ["down", "hangs"])
async def test_never_do_two_work_at_once(server: Server, clock: FakeClock, way: str) -> None:
    """Who cannot renew stops before the Lease is over, and only then another begins."""
    first = Candidate(server, clock, "a")
    await first.led.wait()
    second = Candidate(server, clock, "b")
    await clock.advance(10)
    setattr(first, way, True)
    for _ in range(40):
        await clock.advance(1)
        assert first.working + second.working <= 1
        if second.working:
            break
    assert (first.working, second.working) == (0, 1)
    with pytest.raises(LostLease, match="not renewed for 10 s"):
        await first.task
    await second.end()


async def test_who_finds_another_holder_stops(server: Server, clock: FakeClock) -> None:
    first = Candidate(server, clock, "a")
    await first.led.wait()
    await server.client.patch(Lease, NAME, "kube-system", {"spec": {"holderIdentity": "thief"}})
    await clock.advance(3)
    with pytest.raises(LostLease, match="thief holds it"):
        await first.task
    assert (first.working, first.began) == (0, 1)
    assert (await lease(server)).spec.holder_identity == "thief", "it is not released in another's name"


async def test_a_wrong_clock_elsewhere_does_not_matter(server: Server, clock: FakeClock) -> None:
    """The holder's renewTime lies years back, yet while it changes the Lease is held."""
    first = Candidate(server, clock, "a")
    await first.led.wait()
    second = Candidate(server, clock, "b")
    await clock.advance(1)
    for number in range(20):
        renewed = {"spec": {"renewTime": f"2001-01-01T00:00:{number:02}.000000Z"}}
        await server.client.patch(Lease, NAME, "kube-system", renewed)
        await clock.advance(5)
    assert second.began == 0
    await first.end()
    await second.end()


async def test_what_breaks_the_work_is_told_and_the_lease_released(server: Server, clock: FakeClock) -> None:
    async def broken() -> None:
        raise RuntimeError("no")

    election = Election(Client(Local(server.api.handler, ADMIN)), clock, name=NAME, identity="a")
    with pytest.raises(RuntimeError, match="no"):
        await election.lead(broken)
    assert (await lease(server)).spec.holder_identity == ""


async def test_a_lease_says_its_format(server: Server, clock: FakeClock) -> None:
    first = Candidate(server, clock, "a")
    await first.led.wait()
    assert (await lease(server)).metadata.annotations == {"podfit.dev/lease-format": "1"}
    await first.end()


async def test_a_lease_of_an_older_podfit_is_taken_over(server: Server, clock: FakeClock) -> None:
    first = Candidate(server, clock, "a")
    await first.led.wait()
    await first.end()
    held = await lease(server)
    await server.client.update(replace(held, metadata=replace(held.metadata, annotations={"own": "kept"})))
    second = Candidate(server, clock, "b")
    await second.led.wait()
    assert (await lease(server)).metadata.annotations == {"own": "kept", "podfit.dev/lease-format": "1"}
    await second.end()


async def test_a_lease_of_a_newer_podfit_is_left_alone(server: Server, clock: FakeClock) -> None:
    first = Candidate(server, clock, "a")
    await first.led.wait()
    await first.end()
    held = await lease(server)
    newer = replace(held, metadata=replace(held.metadata, annotations={"podfit.dev/lease-format": "2"}))
    written = await server.client.update(newer)
    election = Election(server.client, clock, name=NAME, identity="b")
    with pytest.raises(NewerLease, match="format 2, this podfit reads 1"):
        await election.lead(lambda: pytest.fail("it leads"))
    assert await lease(server) == written
