"""Changes from before the feed began, or older than its ring: read by an etcd watch of their own.

A watch does not say where history ends and the present begins, so the whole prefix is followed until the revision at
which the feed saw something last; that event is there, or its history is compacted and etcd says so.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from podfit.store.etcd.members import CALL_SECONDS, EtcdMembers
from podfit.store.etcd.messages import Incomplete, Keys, watching
from podfit.store.protocol import Change, Compacted, StoreUnavailable


async def history(
    members: EtcdMembers, keys: Keys, prefix: str, *, after: int, until: int, limit: int
) -> Sequence[Change]:
    """The changes under `prefix` behind `after` up to `until`; when there are more than `limit`, the first of them.

    `until` is the revision of an event. Raises Compacted, StoreUnavailable.
    """
    found: list[Change] = []
    reached = after
    if reached >= until:
        return found
    async with _stream(members, watching(keys.mark, keys.end, max(after, 1))) as stream:
        while reached < until and len(found) < limit:
            answer = await _next(members, stream)
            events = [event for event in answer.events if after < event.kv.mod_revision <= until]
            try:
                found += [change for change in keys.changes(events) if change.record.key.startswith(prefix)]
            except Incomplete as gap:
                raise Compacted(gap.revision) from gap
            reached = answer.events[-1].kv.mod_revision if answer.events else reached
    return found


async def compacted_revision(members: EtcdMembers, keys: Keys) -> int:
    """0 when etcd was never compacted. The mark has a history, so the answer is one or the other."""
    async with _stream(members, watching(keys.mark, b"", 1)) as stream:
        try:
            while not (await _next(members, stream)).events:
                pass
        except Compacted as error:
            return error.revision
    return 0


@asynccontextmanager
async def _stream(members: EtcdMembers, request: Any) -> AsyncIterator[Any]:
    member = members.current
    if unreachable := await member.connect():
        members.leave(member, unreachable)
        raise StoreUnavailable(f"etcd: {unreachable}")
    stream = member.watch()
    try:
        await stream.write(request)
        yield stream
    except grpc.aio.AioRpcError as error:
        members.leave(member, error.details())
        raise StoreUnavailable(f"etcd: {member.url}: {error.details()}") from error
    except TimeoutError:
        members.leave(member, "its watch hangs")
        raise StoreUnavailable(f"etcd: {member.url} does not answer") from None
    finally:
        stream.cancel()


async def _next(members: EtcdMembers, stream: Any) -> Any:
    async with asyncio.timeout(CALL_SECONDS):
        answer = await stream.read()
    if answer is grpc.aio.EOF or (answer.canceled and not answer.compact_revision):
        raise StoreUnavailable("etcd ended the watch")
    if answer.canceled:
        raise Compacted(answer.compact_revision)
    return answer
