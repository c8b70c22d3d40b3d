"""Service accounts of controllers, spoken for with tokens."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.api.authentication.v1.types import SelfSubjectReview
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.client.accounts import RENEW_AFTER, SECONDS, AccountTokens, AsAccount
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.guard import answer
from podfit.net.wire import Identity, Request, Response
from support.clock import FakeClock
from support.server import Server, running_server

MANAGER = Identity("system:kube-controller-manager")


class Bare:
    """A connection that shows nothing of its own."""

    near = False

    def __init__(self, server: Server) -> None:
        self._handler = server.api.handler
        self.tokens: list[str] = []

    async def send(self, request: Request) -> Response:
        self.tokens.append(request.headers.get("authorization", ""))
        return await answer(self._handler, request)

    async def close(self) -> None: ...


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path, clock=FakeClock()) as made:
        yield made


async def test_each_is_itself_and_its_account_is_made_when_it_is_not_there(server: Server) -> None:
    clock = FakeClock()
    tokens, bare = AccountTokens(server.as_identity(MANAGER), clock), Bare(server)
    client = Client(AsAccount(bare, tokens, "namespace-controller"))
    for _ in range(2):
        review = await client.create(SelfSubjectReview())
        assert review.status.user_info.username == "system:serviceaccount:kube-system:namespace-controller"
    assert len(set(bare.tokens)) == 1, "one token is enough"
    await clock.advance(SECONDS * RENEW_AFTER + 1)
    await client.create(SelfSubjectReview())
    assert len(set(bare.tokens)) == 2


async def test_an_account_that_is_made_anew_gets_a_new_token(server: Server) -> None:
    tokens, bare = AccountTokens(server.as_identity(MANAGER), FakeClock()), Bare(server)
    client = Client(AsAccount(bare, tokens, "namespace-controller"))
    await client.create(SelfSubjectReview())
    await server.client.delete(ServiceAccount, "namespace-controller", "kube-system")
    with pytest.raises(ApiError) as error:
        await client.create(SelfSubjectReview())
    assert error.value.code == 401
    await client.create(SelfSubjectReview())
