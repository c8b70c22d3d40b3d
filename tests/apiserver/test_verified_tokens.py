"""A token's signature is checked once; whether the token is still good is asked with every request."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt

from podfit.api.core.v1.config.types import Secret, ServiceAccount
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.registry import info_for
from podfit.apiserver.authn import tokens as module
from podfit.apiserver.authn.tokens import ServiceAccountTokens
from podfit.apiserver.authn.verified_tokens import LONGEST, MOST, Verified, VerifiedTokens
from podfit.apiserver.context import Context, unreached
from podfit.apiserver.registry.stored import Stored
from podfit.core.features import FeatureGates
from podfit.net.wire import Identity
from podfit.store.memory import memory_store
from support.clock import FakeClock

NAMESPACE = "default"


class World:
    """Tokens on a store of their own, and how often a signature was checked."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.store, self.checked = FakeClock(), memory_store(), 0
        self.context = Context(self.store, self.clock, FeatureGates(), unreached)
        self.tokens = ServiceAccountTokens(self.context, folder / "sa.key")
        self.account: ServiceAccount = ServiceAccount()

    async def make(self, obj: Any, name: str, uid: str) -> Any:
        named = type(obj)(metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=uid))
        await Stored[Any](self.store, info_for(type(obj))).create(named)
        return named

    async def remove(self, kind: type, name: str) -> None:
        objects: Stored[Any] = Stored(self.store, info_for(kind))
        record = await objects.record(NAMESPACE, name)
        await objects.delete(NAMESPACE, name, expected=record.mod_revision)

    def issue(self, *, seconds: int = 3600, audiences: tuple[str, ...] = (module.ISSUER,), **bound: ObjectMeta) -> str:
        return self.tokens.issue(self.account, seconds=seconds, audiences=audiences, bound=bound)[0]

    async def good(self, token: str) -> bool:
        return (await self.tokens.check(token)).identity is not None


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made, decode = World(tmp_path), jwt.decode

    def counted(*args: Any, **kwargs: Any) -> Any:
        made.checked += 1
        return decode(*args, **kwargs)

    monkeypatch.setattr(jwt, "decode", counted)
    made.account = await made.make(ServiceAccount(), "robot", "u1")
    yield made
    await made.store.close()


async def test_the_signature_is_checked_once_for_many_requests(world: World) -> None:
    token = world.issue()
    assert [await world.good(token) for _ in range(5)] == [True] * 5
    assert world.checked == 1
    assert len(world.tokens.verified) == 1


async def test_another_signature_under_the_same_claims_is_another_token(world: World) -> None:
    token = world.issue()
    assert await world.good(token)
    other = world.issue()
    forged = ".".join((*token.split(".")[:2], other.split(".")[2]))
    assert not await world.good(forged)
    assert len(world.tokens.verified) == 1


async def test_a_token_whose_time_runs_out_is_refused_at_once_and_forgotten(world: World) -> None:
    token = world.issue(seconds=600)
    assert await world.good(token)
    await world.clock.advance(599)
    assert await world.good(token)
    await world.clock.advance(1)
    assert not await world.good(token)
    assert len(world.tokens.verified) == 0


@pytest.mark.parametrize("again", ["", "u2"])
async def test_a_token_of_an_account_that_is_gone_is_refused_at_once_and_forgotten(world: World, again: str) -> None:
    token = world.issue()
    assert await world.good(token)
    await world.remove(ServiceAccount, "robot")
    if again:  # another account under its name
        await world.make(ServiceAccount(), "robot", again)
    assert not await world.good(token)
    assert len(world.tokens.verified) == 0


async def test_a_token_that_is_revoked_by_its_secret_is_refused_at_once_and_forgotten(world: World) -> None:
    secret = await world.make(Secret(), "leash", "s1")
    token = world.issue(secret=secret.metadata)
    assert await world.good(token)
    await world.remove(Secret, "leash")
    assert not await world.good(token)
    assert len(world.tokens.verified) == 0


async def test_who_asks_for_another_audience_is_not_answered_from_what_is_known(world: World) -> None:
    token = world.issue(audiences=("a",))
    assert (await world.tokens.check(token, ("a",))).identity is not None
    assert (await world.tokens.check(token)).problem
    assert (await world.tokens.check(token, ("b", "a"))).audiences == ("a",)


def known(tokens: VerifiedTokens, names: Iterator[str] | list[str]) -> list[str]:
    return [name for name in names if tokens.find(name) is not None]


def verified(ends: int) -> Verified:
    return Verified({"exp": ends}, Identity("u"))


def test_no_more_than_so_many_are_kept_and_those_that_are_used() -> None:
    tokens, now = VerifiedTokens(), datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    ends = int(now) + 600
    for number in range(MOST):
        tokens.keep(f"t{number}", verified(ends), now)
    assert tokens.find("t0") is not None
    tokens.keep("new", verified(ends), now)
    assert len(tokens) == MOST
    assert known(tokens, ["t0", "t1", "t2", "new"]) == ["t0", "t2", "new"]


def test_those_whose_time_is_over_make_room_first() -> None:
    tokens = VerifiedTokens()
    for number in range(MOST):
        tokens.keep(f"t{number}", verified(1000 if number % 2 else 100), 0.0)
    tokens.keep("new", verified(1000), 500.0)
    assert len(tokens) == MOST // 2 + 1
    assert known(tokens, ["t0", "t1", "new"]) == ["t1", "new"]


def test_a_token_that_is_longer_than_any_of_a_pod_is_not_kept() -> None:
    tokens = VerifiedTokens()
    tokens.keep("x" * (LONGEST + 1), verified(1), 0.0)
    tokens.keep("x" * LONGEST, verified(1), 0.0)
    assert len(tokens) == 1
