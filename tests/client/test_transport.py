"""The transport in the same process: many requests at once."""

import asyncio

from podfit.client.transport import BEGUN_BYTES, READ, WRITE, Local
from podfit.net.wire import Identity, Request, Response


async def test_requests_side_by_side_do_not_begin_in_one_turn() -> None:
    turn, begun = 0, list[int]()

    async def handler(_: Request) -> Response:
        begun.append(turn)
        return Response()

    async def turns() -> None:
        nonlocal turn
        while len(begun) < 64:
            turn += 1
            await asyncio.sleep(0)

    local = Local(handler, Identity(user="c"))
    body = bytes(BEGUN_BYTES // 4 - WRITE)
    await asyncio.gather(turns(), *(local.send(Request("POST", "/", body=body)) for _ in range(64)))
    assert max(begun.count(number) for number in begun) == 4


async def test_small_requests_begin_at_once() -> None:
    async def handler(_: Request) -> Response:
        return Response()

    local = Local(handler, Identity(user="c"))
    for _ in range(BEGUN_BYTES // READ // 2):
        sent = local.send(Request("GET", "/"))
        try:
            sent.send(None)
        except StopIteration:
            continue
        raise AssertionError("it waits")
