"""From a bootstrap token to a node that serves: both certificates, asked for as a kubelet does, and renewed."""

import asyncio
from pathlib import Path

import pytest

from podfit.api.certificates.v1.types import DENIED, CertificateSigningRequest
from podfit.api.core.v1.nodes.types import Node
from podfit.client.certificates import LONGEST_SLEEP, WAIT_SECONDS, CertificateManager, Declined, obtain
from podfit.client.rest import STRATEGIC_PATCH
from podfit.core.errors import ApiError
from podfit.decide.certificates import NODE_CLIENT, NODE_SERVING, with_condition
from podfit.net.certificate_requests import Names, Pair, life_of, read_pair
from podfit.net.wire import Identity
from support.clock import FakeClock
from support.joining import bootstrapping, cluster, register
from support.server import Server

DECADE = 10 * 365.25 * 86400
JUMPS = [3600.0, -3600.0, 86400.0, -86400.0, DECADE, -DECADE]
NODE = Identity("system:node:n1", ("system:nodes",))
CLIENT_NAMES = Names("system:node:n1", ("system:nodes",))
SERVER_NAMES = Names("system:node:n1", ("system:nodes",), ("n1",), ("10.0.0.1",))


async def test_a_token_is_enough_to_become_a_node(tmp_path: Path) -> None:
    clock = FakeClock()
    async with cluster(tmp_path, clock) as server:
        joining = server.as_identity(await bootstrapping(server, clock))
        pair = await obtain(joining, clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES)
        assert b"BEGIN CERTIFICATE" in pair.certificate
        with pytest.raises(ApiError) as error:
            await joining.list(Node)
        assert error.value.code == 403, "and for nothing else"
        master = Names("system:node:n1", ("system:masters",))
        refused = asyncio.create_task(obtain(joining, clock, signer=NODE_CLIENT, use="client", names=master))
        await _asked(server, 2)
        await obtain(joining, clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES)
        assert not refused.done(), "nobody approved it, though one that came later was issued"
        await clock.advance(WAIT_SECONDS + 1)
        with pytest.raises(TimeoutError, match="was not approved within 900 s"):
            await refused


async def test_a_request_that_is_denied_is_not_waited_for(tmp_path: Path) -> None:
    async with cluster(tmp_path, FakeClock()) as server:
        asking = asyncio.create_task(
            obtain(server.as_identity(NODE), FakeClock(), signer=NODE_SERVING, use="server", names=SERVER_NAMES)
        )
        request = await _asked(server)
        await server.client.update(with_condition(request, DENIED, "No", "not here"), subresource="approval")
        with pytest.raises(Declined, match="is denied: not here"):
            await asking


async def test_a_node_gets_a_serving_certificate_once_its_node_tells_the_address(tmp_path: Path) -> None:
    clock = FakeClock()
    async with cluster(tmp_path, clock) as server:
        own = server.as_identity(NODE)
        asking = asyncio.create_task(obtain(own, clock, signer=NODE_SERVING, use="server", names=SERVER_NAMES))
        await _asked(server)
        assert not asking.done()
        await register(own, "n1", "10.0.0.1")
        pair = await asking
        file = tmp_path / "server.pem"
        pair.keep(file)
        assert file.stat().st_mode & 0o777 == 0o600
        assert read_pair(file, SERVER_NAMES, clock.now()) == Pair(pair.certificate.rstrip() + b"\n", pair.key)
        assert read_pair(file, CLIENT_NAMES, clock.now()) is None, "other names"
        assert read_pair(file, SERVER_NAMES, life_of(pair.certificate).ends) is None, "over"
        file.write_bytes(file.read_bytes()[:-40])
        assert read_pair(file, SERVER_NAMES, clock.now()) is None, "damaged"


async def _asked(server: Server, count: int = 1) -> CertificateSigningRequest:
    """The newest request once there are so many."""
    page = await server.client.list(CertificateSigningRequest)
    async for _ in server.client.watch(CertificateSigningRequest, resource_version="0"):  # begins with what is there
        page = await server.client.list(CertificateSigningRequest)
        if len(page.items) >= count:
            break
    return page.items[-1]


async def test_the_address_of_another_node_cannot_be_taken(tmp_path: Path) -> None:
    async with cluster(tmp_path, FakeClock()) as server:
        await register(server.as_identity(NODE), "n1", "10.0.0.1")
        evil = server.as_identity(Identity("system:node:evil", ("system:nodes",)))
        with pytest.raises(ApiError) as error:
            await register(evil, "evil", "10.0.0.1")
        assert (error.value.code, error.value.message) == (
            403,
            ('nodes "evil" is forbidden: node "evil" is not allowed to use the address 10.0.0.1 of node "n1"'),
        )
        for status in (
            {
                "addresses": [{"type": "ExternalIP", "address": "10.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
            },
            {
                "addresses": [{"type": "InternalDNS", "address": "N1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
            },
        ):
            with pytest.raises(ApiError) as error:
                await evil.patch(
                    Node, "evil", "", {"status": status}, content_type=STRATEGIC_PATCH, subresource="status"
                )
            assert error.value.code == 403


async def test_two_steps_do_not_get_there_either(tmp_path: Path) -> None:
    """The address first, while nothing listens, and the port afterwards."""
    async with cluster(tmp_path, FakeClock()) as server:
        await register(server.as_identity(NODE), "n1", "10.0.0.1")
        evil = server.as_identity(Identity("system:node:evil", ("system:nodes",)))
        await register(evil, "evil", "10.0.0.1", port=0)
        with pytest.raises(ApiError) as error:
            await evil.patch(
                Node,
                "evil",
                "",
                {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}},
                content_type=STRATEGIC_PATCH,
                subresource="status",
            )
        assert error.value.code == 403


async def test_a_certificate_is_renewed_before_it_is_over(tmp_path: Path) -> None:
    clock = FakeClock()
    async with cluster(tmp_path, clock) as server:
        own = server.as_identity(NODE)
        first = await obtain(own, clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES)
        renewed: asyncio.Queue[Pair] = asyncio.Queue()
        manager = CertificateManager(
            own, clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES, pair=first, changed=renewed.put
        )
        running = asyncio.create_task(manager.run())
        life = life_of(first.certificate)
        await clock.advance(1)
        clock.jump((life.ends - life.begins).total_seconds() * 0.69)  # a year in steps would be a million of them
        await clock.advance(LONGEST_SLEEP + 1)
        assert renewed.empty(), "a third of its life is left"
        clock.jump((life.ends - life.begins).total_seconds() * 0.22)
        await clock.advance(LONGEST_SLEEP + 1)
        second = await renewed.get()
        assert life_of(second.certificate).ends > life.ends
        assert second.key != first.key
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("seconds", JUMPS)
async def test_a_certificate_is_good_again_when_the_time_of_day_was_set(tmp_path: Path, seconds: float) -> None:
    """Within the step in which the manager sleeps, after the first jump and after the one back. Ten years ahead the
    authority itself is over, and no certificate is good.
    """
    clock = FakeClock()
    async with cluster(tmp_path, clock) as server:
        own = server.as_identity(NODE)
        last = await obtain(own, clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES)
        renewed: asyncio.Queue[Pair] = asyncio.Queue()
        manager = CertificateManager(
            own, clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES, pair=last, changed=renewed.put
        )
        running = asyncio.create_task(manager.run())
        await clock.advance(1)
        for jump in (seconds, -seconds):
            clock.jump(jump)
            await clock.advance(LONGEST_SLEEP + 1)
            if clock.now() < life_of(last.certificate).begins:
                last = await asyncio.wait_for(renewed.get(), 5)
            while not renewed.empty():
                last = renewed.get_nowait()
            life = life_of(last.certificate)
            assert not running.done()
            assert life.begins <= clock.now()
            assert clock.now() < life.ends or jump == DECADE
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_an_authority_that_ended_signs_nothing_and_says_so_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with cluster(tmp_path, clock) as server:
        clock.jump(DECADE)
        asking = asyncio.create_task(
            obtain(server.as_identity(NODE), clock, signer=NODE_CLIENT, use="client", names=CLIENT_NAMES)
        )
        await _asked(server, 1)
        await clock.advance(60)
        told = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [record.getMessage().partition(" request=")[0] for record in told] == ["certificate is not signed"]
        assert told[0].exc_info is None
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
