"""The memory of bodies and answers under way: bounded, shared fairly, given back."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from podfit.core.errors import unauthorized
from podfit.decide.memory_shares import Shares
from podfit.net.http_connection import Connection
from podfit.net.http_server import HttpsServer
from podfit.net.memory_budget import RECEIVED, Account, MemoryBudget, address_party
from podfit.net.tls import KeyPair, server_context
from podfit.net.wire import SMALL_BODY, Pieces, Request, Response
from support.clock import at_rest
from support.eventually import eventually_async
from support.wire import HOST, Dial, Wire, get

MIB = 1 << 20


def looked(budget: MemoryBudget) -> Callable[[], Awaitable[int]]:
    async def look() -> int:
        return budget.held

    return look


class Now:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def account(budget: MemoryBudget, closed: list[str], address: str) -> Account:
    return Account(budget, address, lambda: closed.append(address))


def test_many_quiet_ones_make_room_for_another() -> None:
    now, closed = Now(), list[str]()
    budget = MemoryBudget(Shares(whole=100, party=60, connection=50), now)
    slow = [account(budget, closed, f"10.0.0.{number}") for number in range(10)]
    assert all(one.hold(RECEIVED, 10) for one in slow)
    other = account(budget, closed, "10.0.1.1")
    assert not other.hold(RECEIVED, 20)
    now.seconds = 2.0
    assert other.hold(RECEIVED, 20)
    assert len(closed) == 2
    assert budget.held == 100
    other.close()
    assert budget.held == 80


def test_one_user_is_one_party_from_every_address() -> None:
    now, closed = Now(), list[str]()
    budget = MemoryBudget(Shares(whole=100, party=60, connection=50), now)
    for number in range(6):
        mine = account(budget, closed, f"10.0.0.{number}")
        assert mine.hold(RECEIVED, 10)
        mine.belongs_to("jane")
    late = account(budget, closed, "10.0.0.9")
    late.belongs_to("jane")
    assert not late.hold(RECEIVED, 10)
    now.seconds = 2.0
    assert late.hold(RECEIVED, 10)
    assert len(closed) == 1


def test_addresses_of_one_machine_are_one_party() -> None:
    assert address_party("2001:db8::1") == address_party("2001:db8::ffff:2")
    assert address_party("2001:db8::1") != address_party("2001:db8:0:1::1")
    assert address_party("::ffff:10.0.0.1") == address_party("10.0.0.1")


# ---------------------------------------------------------------------- on connections


def test_who_waits_for_an_answer_to_leave_hears_of_the_end_of_its_connection() -> None:
    closed, left = list[str](), list[str]()
    one = account(MemoryBudget(), closed, "10.0.0.1")
    one.keep_until_sent(lambda: left.append("one"))
    one.close()
    one.sent()
    assert left == ["one"]


async def by_header(request: Request) -> str:
    if request.headers.get("authorization") == "wrong":
        raise unauthorized()
    return request.headers.get("authorization", "")


async def told(request: Request) -> Response:
    return Response(200, {}, b"unread" if request.unread else b"%d" % len(request.body))


@asynccontextmanager
async def serving(
    server_pair: KeyPair, budget: MemoryBudget, answer: Response | None = None, body_timeout: float = 60.0
) -> AsyncIterator[int]:
    async def handler(request: Request) -> Response:
        if request.caller is not None and (user := request.headers.get("authorization")):
            request.caller.belongs_to(user)
        return answer if answer is not None and request.method == "GET" else await told(request)

    server = HttpsServer(
        handler, server_context(server_pair), identify=by_header, budget=budget, body_timeout=body_timeout
    )
    try:
        yield await server.listen(HOST, 0)
    finally:
        await server.close(deadline=1.0)


def post(size: int, user: str = "") -> bytes:
    return f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: {user}\r\nContent-Length: {size}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("size", "user", "said"),
    [
        (SMALL_BODY, "", str(SMALL_BODY)),
        (SMALL_BODY + 1, "", "unread"),
        (SMALL_BODY + 1, "wrong", "unread"),
        (2 * MIB, "jane", str(2 * MIB)),
    ],
)
async def test_a_large_body_is_read_from_somebody(
    server_pair: KeyPair, dial: Dial, size: int, user: str, said: str
) -> None:
    async with serving(server_pair, budget := MemoryBudget()) as port:
        wire = await dial(port)
        await wire.send(post(size, user) + b"a" * size)
        assert (await wire.answer())[2].decode() == said
        assert budget.held <= 160 * 1024  # what TLS keeps of a large body


async def test_slow_bodies_of_one_do_not_keep_another_from_sending(server_pair: KeyPair, dial: Dial) -> None:
    budget = MemoryBudget(Shares(whole=4 * MIB, party=2 * MIB, connection=2 * MIB))
    async with serving(server_pair, budget) as port:
        slow = [await dial(port) for _ in range(8)]
        for wire in slow:
            await wire.send(post(MIB, "mallory") + b"a" * (MIB - 1))
        refused = [wire async for wire in answered(slow)]
        assert 5 <= len(refused) < 8
        assert budget.held <= 2 * MIB
        other = await dial(port)
        await other.send(post(MIB, "jane") + b"a" * MIB)
        assert (await other.answer())[0] == 200
        for wire in slow:
            wire.writer.transport.abort()
        await eventually_async(
            looked(budget), lambda held: held <= 160 * 1024, within=10, what="what they held is given back"
        )


async def answered(wires: list[Wire]) -> AsyncIterator[Wire]:
    """Those that are closed by the server, with a refusal or without."""
    for wire in wires:
        try:
            said = await asyncio.wait_for(wire.reader.read(100), 0.3)
        except TimeoutError:
            continue
        except (ConnectionError, ssl.SSLError):
            said = b""
        assert said.startswith(b"HTTP/1.1 429 ") or not said
        yield wire


async def test_answers_that_nobody_reads_are_bounded(server_pair: KeyPair, dial: Dial) -> None:
    budget = MemoryBudget(Shares(whole=8 * MIB, party=4 * MIB, connection=4 * MIB))
    async with serving(server_pair, budget, Response(200, {}, b"a" * MIB)) as port:
        silent = [await dial(port) for _ in range(12)]
        for wire in silent:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a socket
            await wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: mallory\r\n\r\n" * 8)
        await eventually_async(
            looked(budget), lambda held: held >= 2 * MIB, within=10, what="answers wait for their clients"
        )
        assert budget.held <= 4 * MIB
        other = await dial(port)
        await other.send(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: jane\r\n\r\n")
        assert len((await other.answer())[2]) == MIB
        for wire in silent:
            wire.writer.transport.abort()
        await eventually_async(
            looked(budget), lambda held: held <= 160 * 1024, within=10, what="what they held is given back"
        )


async def test_a_head_that_does_not_end_is_counted_and_bounded(server_pair: KeyPair, dial: Dial) -> None:
    async with serving(server_pair, budget := MemoryBudget()) as port:
        wire = await dial(port)
        line = b"X-A: " + b"a" * 30_000 + b"\r\n"
        await wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + 4 * line)
        await eventually_async(looked(budget), lambda held: held >= 4 * 30_000, within=10, what="the head is counted")
        for _ in range(12):
            await wire.send(line)
        assert (await wire.answer())[0] == 431
        await at_rest()
        assert budget.held == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /  HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \r\nContent-Length: 3\r\n\r\nabc",
    ],
)
@pytest.mark.parametrize("before", [b"", b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n", post(3) + b"abc"])
@pytest.mark.parametrize("piece", [1, 7, 10_000])
async def test_what_the_parser_forgives_is_refused(
    server_pair: KeyPair, dial: Dial, data: bytes, before: bytes, piece: int
) -> None:
    async with serving(server_pair, MemoryBudget()) as port:
        wire = await dial(port)
        sent = before + data
        for start in range(0, len(sent), piece):
            await wire.send(sent[start : start + piece])
        if before:
            assert (await wire.answer())[0] == 200
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert await wire.reader.read() == b""


async def test_pieces_say_what_they_hold_of_their_own() -> None:
    made, viewed = Pieces([b"a" * MIB]), Pieces([memoryview(b"a" * MIB)])
    assert len(await anext(made)) == len(await anext(viewed)) == 64 * 1024
    assert (made.waiting, viewed.waiting) == (MIB, 0)


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        pytest.param(get("/healthz"), False, id="an answer that is not read"),
        pytest.param(post(SMALL_BODY) + b"a", False, id="a body whose end does not come"),
        pytest.param(post(SMALL_BODY)[:-4] + b"\r\nA: " + b"a" * 20_000, False, id="a head whose end does not come"),
        pytest.param(
            post(SMALL_BODY).replace(b"Content-Length: 65536", b"Transfer-Encoding: chunked") + b"zz\r\n",
            True,
            id="no chunk",
        ),
        pytest.param(b"hello\r\n\r\n", True, id="no HTTP"),
        pytest.param(post(4), True, id="a body that comes too late"),
    ],
)
async def test_a_connection_that_has_ended_leaves_nothing(
    server_pair: KeyPair, dial: Dial, sent: bytes, answered: bool
) -> None:
    """Not even for the collector of cycles: what it finds late lies between what stays, so the memory is not given
    back."""

    async def alive() -> int:
        return sum(isinstance(there, Connection) for there in gc.get_objects())

    large, budget = Response(200, {}, b"a" * 8 * MIB), MemoryBudget()
    async with serving(server_pair, budget, large, body_timeout=0.05 if answered else 60) as port:
        gc.disable()
        gc.freeze()  # what is there is not looked at: a session of all tests has millions of objects
        try:
            wire = await dial(port)
            await wire.send(sent)
            if answered:
                assert (await wire.head())[0] in (400, 408)
            else:
                await eventually_async(looked(budget), within=10, what="something is held")
            wire.writer.transport.abort()
            await eventually_async(alive, lambda left: left == 0, within=10, what="the connection is no more")
        finally:
            gc.unfreeze()
            gc.enable()
