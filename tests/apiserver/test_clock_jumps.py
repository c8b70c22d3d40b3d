"""The time of day is set, forward or back, while the API server runs: what lasts, lasts as long as before."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podfit.answers.facts.settings import LEASE, NAMESPACE, MakeRoomSetting, read_room
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.events.types import Event, EventSeries
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.handlers import allocations
from podfit.apiserver.housekeeping.compaction import EVERY, LIFE, Ages
from podfit.apiserver.registry import pending_allocations
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.controllers.room_notice import RENEW, keep_notice
from podfit.core.errors import ApiError
from podfit.core.times import format_micro, format_time
from podfit.decide.workload.unsupported_kinds import has_manager
from podfit.net.wire import Request, Response
from support.access import pod
from support.candidate import Candidate
from support.clock import FakeClock
from support.server import ADMIN, Server, document

HOUR, DAY, DECADE = 3600.0, 86400.0, 10 * 365.25 * 86400
JUMPS = [HOUR, -HOUR, DAY, -DAY, DECADE, -DECADE]
every_jump = pytest.mark.parametrize("seconds", JUMPS)


def clock_of(server: Server) -> FakeClock:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    return clock


def settings(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))


@every_jump
async def test_lists_and_watches_go_on(server: Server, seconds: float) -> None:
    began = (await server.client.list(ConfigMap, "default")).resource_version
    watch = server.client.watch(ConfigMap, namespace="default", resource_version=began)
    try:
        for number, jump in enumerate((seconds, -seconds)):
            clock_of(server).jump(jump)
            made = await server.client.create(settings(f"after-{number}"))
            assert made.metadata.creation_timestamp == format_time(clock_of(server).now())
            seen = await asyncio.wait_for(anext(watch), 5)
            assert (seen.type, seen.object.metadata.name) == ("ADDED", f"after-{number}")
    finally:
        await watch.aclose()
    assert len((await server.client.list(ConfigMap, "default")).items) == 2


async def _who(server: Server, token: str) -> int:
    answer = await server.ask("GET", "/api", identity=None, authorization=f"Bearer {token}")
    return answer.status


async def _token(server: Server) -> str:
    body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":7200}}'
    answer = await server.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", body)
    token: str = document(await answer.read())["status"]["token"]
    return token


@every_jump
async def test_a_token_is_good_in_its_time_only(server: Server, seconds: float) -> None:
    before = await _token(server)
    clock_of(server).jump(seconds)
    after = await _token(server)
    assert await _who(server, before) == (200 if 0 <= seconds < 7200 else 401)
    assert await _who(server, after) == 200
    clock_of(server).jump(-seconds)
    assert await _who(server, before) == 200
    assert await _who(server, after) == (200 if 0 <= -seconds < 7200 else 401)
    assert await _who(server, await _token(server)) == 200


# ---------------------------------------------------------------------- events


def event(name: str, when: str) -> Event:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    return convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": about,
            "firstTimestamp": when,
            "lastTimestamp": when,
        },
        Event,
    )


async def _names(server: Server) -> list[str]:
    return [event.metadata.name for event in (await server.client.list(Event, "default")).items]


@every_jump
async def test_events_are_kept_for_an_hour_of_the_monotonic_clock(server: Server, seconds: float) -> None:
    clock = clock_of(server)
    await server.client.create(event("before", format_time(clock.now())))
    clock.jump(seconds)
    await server.client.create(event("after", format_time(clock.now())))
    await clock.advance(LIFE - 1)
    await server.client.create(settings("gives-the-store-a-turn"))
    assert await _names(server) == ["after", "before"]
    for number in range(3):
        await clock.advance(EVERY)
        await server.client.create(settings(f"turn-{number}"))
    assert await _names(server) == []


@every_jump
async def test_events_of_an_earlier_run_are_gone_after_an_hour_at_most(seconds: float) -> None:
    clock = FakeClock()
    old = event("old", format_time(clock.now()))
    clock.jump(seconds)
    ages = Ages(clock, 7)
    await clock.advance(EVERY)
    ages.look(9)
    assert ages.is_over(old, 7) is (seconds > 0)  # a machine that was off looks the same
    assert not ages.is_over(event("new", old.last_timestamp or ""), 8)
    await clock.advance(LIFE - EVERY)
    ages.look(9)
    assert ages.is_over(old, 7)
    assert not ages.is_over(old, 8)


async def test_a_series_of_an_earlier_run_is_as_old_as_its_last_event() -> None:
    clock = FakeClock()
    when = format_time(clock.now())
    first = replace(event("e", when), last_timestamp=None, event_time=when)
    await clock.advance(LIFE + 1)
    ages = Ages(clock, 7)
    assert ages.is_over(first, 7)
    series = EventSeries(count=9, last_observed_time=format_micro(clock.now()))
    assert not ages.is_over(replace(first, series=series), 7)


# ---------------------------------------------------------------------- leases


@every_jump
async def test_who_leads_leads_on(server: Server, seconds: float) -> None:
    """And the other one, who waits, takes over when the first is gone."""
    clock = clock_of(server)
    first = Candidate(server, clock, "a")
    await first.led.wait()
    second = Candidate(server, clock, "b")
    for jump in (seconds, -seconds, seconds):
        clock.jump(jump)
        for _ in range(10):
            first.renewed.clear()
            await clock.advance(2)
            await asyncio.wait_for(first.renewed.wait(), 5)
            assert (first.working, second.working) == (1, 0)
    await first.end()
    await clock.advance(2)
    await asyncio.wait_for(second.led.wait(), 5)
    await second.end()


@every_jump
async def test_the_notice_of_room_is_right_within_a_period(server: Server, seconds: float) -> None:
    clock = clock_of(server)
    written = asyncio.Event()

    async def handler(request: Request) -> Response:
        answered = await server.api.handler(request)
        if answered.status < 300:
            written.set()
        return answered

    keeping = asyncio.create_task(keep_notice(Client(Local(handler, ADMIN)), clock, "shrink"))
    await asyncio.wait_for(written.wait(), 5)
    written.clear()
    clock.jump(seconds)
    assert await read_room(server.client, clock.now()) == MakeRoomSetting()
    lease = await server.client.get(Lease, LEASE, NAMESPACE)
    assert not has_manager(lease, clock.now())
    await clock.advance(RENEW)
    await asyncio.wait_for(written.wait(), 5)
    assert await read_room(server.client, clock.now()) == MakeRoomSetting("shrink")
    assert has_manager(await server.client.get(Lease, LEASE, NAMESPACE), clock.now())
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping


# ---------------------------------------------------------------------- addresses, deletions


def service(name: str) -> Service:
    spec = {"ports": [{"port": 80}], "clusterIP": "10.96.0.10"}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Service)


async def _is_refused(server: Server, name: str) -> bool:
    try:
        await server.client.create(service(name))
    except ApiError as error:
        return "already allocated" in error.message
    return False


@every_jump
@pytest.mark.parametrize("seen", [True, False])
async def test_an_address_that_was_left_behind_is_free_in_time(server: Server, seconds: float, seen: bool) -> None:
    """What a request under way holds nobody gets; what a dead server left, the next after a minute."""
    clock = clock_of(server)
    owner = allocations.AllocationOwner("default", "lost", "of-the-dead", format_time(clock.now()))
    await server.context.store.create(f"{allocations.ROOT}/addresses/10.96.0.10", msgspec.json.encode(owner))
    if seen:
        assert await _is_refused(server, "early")
    clock.jump(seconds)
    assert await _is_refused(server, "next") is (seen or seconds < 0)
    await clock.advance(pending_allocations.SECONDS + 1)
    assert await _is_refused(server, "last") is (not seen and seconds > 0)  # "next" has it


@every_jump
async def test_a_pod_that_is_to_end_keeps_its_grace_period(server: Server, seconds: float) -> None:
    """The node ends it; the server deletes nothing because of the time."""
    await pod(server, "p", "n1", terminationGracePeriodSeconds=30)
    await server.client.delete(Pod, "p", "default")
    clock_of(server).jump(seconds)
    await clock_of(server).advance(2 * EVERY)
    again: Any = await server.client.get(Pod, "p", "default")
    assert again.metadata.deletion_grace_period_seconds == 30
    await server.client.delete(Pod, "p", "default", grace=0)
    assert (await server.client.list(Pod, "default")).items == ()
