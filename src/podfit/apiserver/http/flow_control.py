"""Flow control: queues requests by `apiserver.http.priority_levels`.

A request of a limited level takes a seat before it is looked at and gives it back when it is answered, a large answer
when it has left the machine; a watch or a followed log when its stream begins. A client that takes nothing of its
answer lends its seat to those who wait for one: who does not read keeps nobody waiting (what its connection holds is
bounded in `net.memory_budget`). Who finds none waits in the queue of their flow, and each turn of the event loop lets
the next few in, one of each flow in turn. What comes from the sockets between two turns is thereby never kept waiting
for more than those few.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec.structs import replace

from podfit.apiserver.http.priority_levels import EXEMPT, LEVELS, LONGEST_WAIT, Level, Turn, judge, level_of, may_start
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.streams import ClosingStream
from podfit.net.wire import LARGE, Caller, Duplex, Identity, Pieces, Request, Response, Upgrade

RETRY_SECONDS = 1
LENT_SECONDS = 0.05  # without a byte taken of an answer, after which its seat is lent


class _LevelState(msgspec.Struct):
    """The requests of one level."""

    level: Level
    under_way: int = 0
    started: int = 0
    refused: int = 0
    queues: OrderedDict[str, deque[asyncio.Future[None]]] = msgspec.field(default_factory=OrderedDict)
    sending: "dict[_Seat, Caller]" = msgspec.field(default_factory=dict)
    """The seats of answers that have not left, which are `under_way` as well."""

    def waiting(self, flow: str) -> int:
        return len(self.queues.get(flow, ()))

    def start(self) -> None:
        self.under_way += 1
        self.started += 1

    def lend(self) -> None:
        """The seats of those who take nothing of their answers, when there is no other."""
        if self.under_way < self.level.seats:
            return
        for seat in [seat for seat, caller in self.sending.items() if caller.quiet >= LENT_SECONDS]:
            del self.sending[seat]
            self.under_way -= 1

    def next(self) -> asyncio.Future[None] | None:
        """Who has waited longest in the flow whose turn it is; that flow goes to the end of the line."""
        while self.queues:
            flow, queue = next(iter(self.queues.items()))
            request = queue.popleft()
            if queue:
                self.queues.move_to_end(flow)
            else:
                del self.queues[flow]
            if not request.done():
                return request
        return None


class FlowControl:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._levels = {level: _LevelState(level) for level in LEVELS if level.seats}
        self._urgent_levels = tuple(state for state in self._levels.values() if state.level.urgent)
        self._turning = False
        self._streams: dict[str, int] = {}  # by user

    def taken(self, identity: Identity, request_info: RequestInfo | None, request: Request) -> "_Seat":
        """A seat for the request. Raises 429 when too many wait already, or it has waited too long."""
        level = level_of(
            identity.user, identity.groups, resource=request_info.resource if request_info else "", path=request.path
        )
        return _Seat(self, level, identity.user, request.caller)

    async def acquire(self, level: Level, user: str) -> None:
        if level is not EXEMPT:
            await self._admit(self._levels[level], user)

    def release(self, level: Level) -> None:
        if level is not EXEMPT:
            self._levels[level].under_way -= 1
            self._turn()

    def keep(self, level: Level, seat: "_Seat", caller: Caller) -> None:
        """The seat is given back when what is being answered has left."""
        self._levels[level].sending[seat] = caller
        caller.keep_until_sent(partial(self._sent, level, seat))

    def _sent(self, level: Level, seat: "_Seat") -> None:
        if self._levels[level].sending.pop(seat, None) is not None:
            self.release(level)

    def streaming(self, seat: "_Seat", identity: Identity, answer: Response) -> Response:
        """The answer, counted while it streams. What it streams has begun already, so nothing is refused any more."""
        level = seat.level
        if answer.upgrade is not None and level.watches:
            return replace(answer, upgrade=partial(self._changed, identity.user, answer.upgrade))
        if isinstance(answer.body, bytes | Pieces):
            seat.until_sent = not isinstance(answer.body, bytes) or len(answer.body) > LARGE
            return answer
        if not level.watches:
            return answer
        user = identity.user
        self._streams[user] = self._streams.get(user, 0) + 1
        return Response(answer.status, answer.headers, ClosingStream(answer.body, lambda: self._left(user)))

    async def _changed(self, user: str, upgrade: Upgrade, duplex: Duplex) -> None:
        self._streams[user] = self._streams.get(user, 0) + 1
        try:
            await upgrade(duplex)
        finally:
            self._left(user)

    def _left(self, user: str) -> None:
        left = self._streams[user] - 1
        if left:
            self._streams[user] = left
        else:
            del self._streams[user]

    def check_streams(self, level: Level, identity: Identity) -> None:
        """Raises 429 when the user may open no further stream."""
        if level.watches and self._streams.get(identity.user, 0) >= level.watches:
            raise too_many(f"{identity.user} has {level.watches} watches open, which is the limit")

    def counts(self) -> Iterator[tuple[str, int, int, int]]:
        """Level, requests under way, waiting, refused so far."""
        for level, state in self._levels.items():
            yield level.name, state.under_way, sum(map(len, state.queues.values())), state.refused

    async def _admit(self, state: _LevelState, flow: str) -> None:
        if state.sending:
            state.lend()
        waiting = state.waiting(flow) or (1 if state.queues else 0)
        turn = judge(
            state.level, under_way=state.under_way, started=state.started, waiting=waiting, urgent=self._urgent()
        )
        if turn is Turn.REFUSE:
            state.refused += 1
            raise too_many("Too many requests, please try again later.")
        if turn is Turn.GO:
            state.start()
            self._turn()
            return
        mine = asyncio.get_running_loop().create_future()
        state.queues.setdefault(flow, deque()).append(mine)
        self._turn()
        timer = self._clock.call_later(LONGEST_WAIT, partial(_give_up, mine))
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():  # it was let in, and its client left in the same moment
                state.under_way -= 1
                raise
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            state.refused += 1
            raise too_many("The request waited too long, please try again later.") from None
        finally:
            timer.cancel()

    def _urgent(self) -> bool:
        return any(state.under_way for state in self._urgent_levels)

    def _has_room(self, state: _LevelState) -> bool:
        return may_start(state.level, under_way=state.under_way, started=state.started, urgent=self._urgent())

    def _turn(self) -> None:
        """Begin a turn with the loop's next one."""
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._turning = False
        for state in self._levels.values():  # the urgent ones come first
            state.started = 0
            if not state.queues:
                continue
            if state.sending:
                state.lend()
            while self._has_room(state) and (waiting := state.next()):
                state.start()
                waiting.set_result(None)
            if state.started or state.queues:
                self._turn_again(state)

    def _turn_again(self, state: _LevelState) -> None:
        """A level that is full has its next turn when a seat is given back."""
        if state.started or state.under_way < state.level.seats:
            self._turn()
        elif state.sending:
            self._clock.call_later(LENT_SECONDS, self._turn)


class _Seat:
    """Taken for as long as the block lasts, or `until_sent`; a class, because a generator costs every request several
    times as much."""

    __slots__ = ("_caller", "_flow_control", "_user", "level", "until_sent")

    def __init__(self, flow_control: FlowControl, level: Level, user: str, caller: Caller | None) -> None:
        self._flow_control, self.level, self._user, self._caller = flow_control, level, user, caller
        self.until_sent = False

    async def __aenter__(self) -> "_Seat":
        await self._flow_control.acquire(self.level, self._user)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.until_sent and self._caller is not None and self.level is not EXEMPT:
            self._flow_control.keep(self.level, self, self._caller)
        else:
            self._flow_control.release(self.level)


def _give_up(waiting: "asyncio.Future[None]") -> None:
    waiting.cancel()


def too_many(text: str) -> ApiError:
    return ApiError(429, "TooManyRequests", text, {"retryAfterSeconds": RETRY_SECONDS})
