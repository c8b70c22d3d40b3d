"""Members that die, streams that break, answers that are lost."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import grpc
import grpc.aio
import pytest

from podfit.store.etcd import members as members_module
from podfit.store.etcd.members import EtcdMember as StoreMember
from podfit.store.etcd.store import EtcdStore
from podfit.store.hub import HubWatch
from podfit.store.protocol import Change, Compacted, Record, StoreUnavailable
from support.etcd import etcd_cluster, open_etcd
from support.eventually import PATIENCE

pytestmark = pytest.mark.etcd


async def read(watch: HubWatch, count: int) -> list[Change]:
    found: list[Change] = []
    async with asyncio.timeout(20 * PATIENCE):
        while len(found) < count:
            found += await anext(watch)
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [1, pytest.param(15, marks=pytest.mark.campaign)])
async def test_any_member_may_die(caplog: pytest.LogCaptureFixture, rounds: int) -> None:
    """15 rounds: of three etcd members the one that is being asked is killed; a write, a read and a watch go on."""
    with etcd_cluster(3) as members:
        store = await open_etcd(*(member.client for member in members))
        watch = store.watch("/", after=store.revision)
        made: list[Record] = []
        for number in range(rounds):
            member = next(member for member in members if member.client == store._members.current.url)
            made.append(await store.create(f"/{number}/before", b""))
            member.stop()
            made.append(await store.update(f"/{number}/before", b"2", expected=made[-1].mod_revision))
            assert await store.get(f"/{number}/before") == made[-1]
            member.start()
            await asyncio.to_thread(member.await_health)
        assert [change.record for change in await read(watch, len(made))] == made
        assert (await store.list("/")).records == sorted(made[1::2], key=lambda record: record.key)
        assert "etcd member left" in caplog.text
        await store.close()


async def test_an_etcd_that_comes_back_loses_nothing_of_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members_module, "ALL_SECONDS", 0.3)
    with etcd_cluster() as (member,):
        store = await open_etcd(member.client)
        watch = store.watch("/", after=store.revision)
        first = await store.create("/a", b"1")
        assert await read(watch, 1) == [Change(False, first, None)]
        member.stop()
        assert _well(store)
        with pytest.raises(StoreUnavailable, match=member.client):
            await store.get("/a")
        assert not _well(store)
        with pytest.raises(StoreUnavailable, match=member.client):
            await store.update("/a", b"2", expected=first.mod_revision)
        member.start()
        await asyncio.to_thread(member.await_health)
        second = await store.update("/a", b"3", expected=first.mod_revision)
        assert await read(watch, 1) == [Change(False, second, first)]
        assert _well(store)
        await store.close()


def _well(store: EtcdStore) -> bool:
    return store.healthy


async def test_after_a_gap_watchers_are_told_and_begin_anew(etcd_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream breaks, and before it is back the others write and compact."""
    store = await open_etcd(etcd_url)
    other = await open_etcd(etcd_url, prefix=store._keys.prefix.removesuffix("/"))
    made = await store.create("/a", b"1")
    watch = store.watch("/", after=store.revision)
    connect = StoreMember.connect
    gate = asyncio.Event()

    async def held(member: StoreMember) -> str:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "events of etcd":
            await gate.wait()
        return await connect(member)

    monkeypatch.setattr(StoreMember, "connect", held)
    store._feed._stream.cancel()
    changed = await other.update("/a", b"2", expected=made.mod_revision)
    gone = await other.delete("/a", expected=changed.mod_revision)
    await other.compact(gone.mod_revision)
    gate.set()
    with pytest.raises(Compacted):
        await read(watch, 1)
    page = await store.list("/")
    watch = store.watch("/", after=page.revision)
    again = await other.create("/a", b"3")
    assert await read(watch, 1) == [Change(False, again, None)]
    await store.close()
    await other.close()


class LostAnswers:
    """The next `lose` transactions are done or not, and their answers never come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, done: bool) -> None:
        real = StoreMember.call
        self.lose = 0

        def call(member: StoreMember, method: str, request: Any, answer: Any, **more: Any) -> Awaitable[Any]:
            if method == "KV/Txn" and self.lose:
                self.lose -= 1
                return self._lost(real(member, method, request, answer, **more) if done else None)
            return real(member, method, request, answer, **more)

        monkeypatch.setattr(StoreMember, "call", call)

    async def _lost(self, call: Awaitable[Any] | None) -> Any:
        if call is not None:
            await call
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), details="Socket closed"
        )


async def test_a_write_whose_answer_was_lost_is_found(etcd_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_etcd(etcd_url)
    watch = store.watch("/", after=store.revision)
    answers = LostAnswers(monkeypatch, done=True)
    answers.lose = 1
    made = await store.create("/a", b"1")
    answers.lose = 1
    changed = await store.update("/a", b"2", expected=made.mod_revision)
    assert await store.get("/a") == changed
    assert await read(watch, 2) == [Change(False, made, None), Change(False, changed, made)], "each was done once"
    answers.lose = 1
    with pytest.raises(StoreUnavailable, match="did not say whether"):  # somebody deleted it, perhaps another
        await store.delete("/a", expected=changed.mod_revision)
    await store.close()


async def test_a_write_that_nobody_did_is_not_acknowledged(etcd_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_etcd(etcd_url)
    answers = LostAnswers(monkeypatch, done=False)
    answers.lose = 1
    with pytest.raises(StoreUnavailable, match=r"did not say whether it was stored: .*Socket closed"):
        await store.create("/a", b"1")
    made = await store.create("/a", b"2")
    answers.lose = 1
    changed = await store.update("/a", b"3", expected=made.mod_revision)  # sent again
    assert await store.get("/a") == changed
    answers.lose = 9
    with pytest.raises(StoreUnavailable, match="did not say whether"):
        await store.delete("/a", expected=changed.mod_revision)
    await store.close()


async def test_each_member_says_how_it_is() -> None:
    """One that is dead, and one that has lost the others and so has no leader."""
    with etcd_cluster(3) as members:
        store = await open_etcd(*(member.client for member in members))
        assert await store.servers() == {"etcd-0": "", "etcd-1": "", "etcd-2": ""}
        members[1].stop()
        async with asyncio.timeout(20 * PATIENCE):  # until the others have a leader again
            told = await store.servers()
            while told["etcd-0"] or told["etcd-2"]:
                told = await store.servers()
        assert told["etcd-1"].startswith(f"{members[1].client}: ")
        members[2].stop()
        assert all((await store.servers()).values())
        await store.close()
