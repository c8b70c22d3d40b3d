"""Whoever shows a certificate gets an answer; only those an authority vouches for get a name."""

import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from podfit.net.client_certificates import Trust
from podfit.net.system import SystemClock
from podfit.net.tls import LEAF_LIFE, Authority, KeyPair, client_context
from podfit.net.wire import Handler, Request, Response
from support.clock import FakeClock
from support.wire import Wire, get

Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
Dial = Callable[..., Awaitable[Wire]]


async def told(request: Request) -> Response:
    return Response(200, {}, json.dumps([request.peer_certificate is not None, request.untrusted]).encode())


def long_ago(directory: Path) -> Authority:
    return Authority.load(directory, clock=FakeClock(SystemClock().now() - LEAF_LIFE - timedelta(days=1)))


def shown(case: str, authority: Authority, elsewhere: Path) -> KeyPair:
    if case == "of another authority":
        return Authority.load(elsewhere, clock=SystemClock()).client("x", user="x")
    if case == "of another authority by the same name":
        return Authority.load(elsewhere, clock=SystemClock()).client("x", user="admin", groups=("system:masters",))
    if case == "expired":
        return long_ago(authority.directory).client("old", user="x")
    return authority.server("of a server", hosts=("127.0.0.1",))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    "case", ["of another authority", "of another authority by the same name", "expired", "of a server"])
async def test_a_certificate_that_nobody_vouches_for_is_told_to_the_handler(
    case: str, version: ssl.TLSVersion, authority: Authority, serving: Serving, dial: Dial, tmp_path: Path,
) -> None:
    pair = shown(case, authority, tmp_path)
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    context.maximum_version = version
    async with serving(told) as port:
        wire = await dial(port, context)
        for _ in range(2):
            await wire.send(get("/"))
            verified, untrusted = json.loads((await wire.answer())[2])
            assert not verified
            assert untrusted


async def test_a_session_taken_up_again_is_judged_again(authority: Authority, serving: Serving, dial: Dial) -> None:
    pair = authority.client("admin", user="admin")
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    async with serving(told) as port:
        for _ in range(2):
            wire = await dial(port, context)
            await wire.send(get("/"))
            assert json.loads((await wire.answer())[2]) == [True, ""]


def test_what_is_no_certificate_is_no_good(authority: Authority) -> None:
    assert Trust(authority.certificate).objection(b"nothing of the kind")
