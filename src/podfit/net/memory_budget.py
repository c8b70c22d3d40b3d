"""The memory budget: what the bodies and answers under way of all HTTPS servers of a process may take together.

Everything that waits between a socket and a handler is counted by the connection that it waits on, in three parts:

    RECEIVED   of a head, a body or another protocol: what has come; a body counts until it is answered
    UNSENT     of an answer or a stream: what waits for the client, from the moment in which the connection is full
               until all has left the machine, with a body that is this answer's alone
    KEPT       what TLS keeps of large bodies and answers for as long as the connection lasts

The rest of a connection is the same for an idle one, and their number is bounded (`http_accept`). A connection counts
for its party: the user, as soon as the server knows, and until then the address. `decide.memory_shares` says who has
room: 128 MiB in all, 64 MiB for a party, 16 MiB for a connection. Who has none is refused: a body with 429, an answer
by the end of its connection. Where there is none, connections without progress for a second are closed for who asks.
So nobody waits for memory, and a client that neither sends nor reads costs others nothing.
"""

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from podfit.decide.memory_shares import Granted, MakesRoom, Party, Shares, judge

RECEIVED, UNSENT, KEPT = 0, 1, 2
PROGRESS = 16 * 1024  # bytes: who sends or takes less in a while makes no progress
PREFIX = 64  # bits of an IPv6 address: one machine may have all that begin so


def address_party(address: str) -> str:
    """The party of who has not said who they are."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return f"address {address}"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return f"address {parsed.ipv4_mapped}"
        return f"address {parsed.packed[: PREFIX // 8].hex()}"
    return f"address {parsed}"


def _nothing() -> None:
    """For who holds nothing any more."""


class Account:
    """What one connection holds. `gives_way` closes the connection; it is called once, when others need the room."""

    __slots__ = (
        "_budget",
        "_closed",
        "_gives_way",
        "_known",
        "_moved",
        "_parts",
        "_progressed",
        "busy",
        "held",
        "party",
        "until_sent",
    )

    def __init__(self, budget: "MemoryBudget", address: str, gives_way: Callable[[], None]) -> None:
        self.party = address_party(address)
        self.held = 0
        self._budget = budget
        self._gives_way = gives_way
        self._known = ""
        self._parts = [0, 0, 0]
        self._progressed = budget.now()
        self._moved = 0
        self._closed = False
        self.busy = False
        """While a request is answered."""
        self.until_sent: Callable[[], None] | None = None

    def belongs_to(self, user: str) -> None:
        """Who asks, and from now on has what it holds counted."""
        if user == self._known:
            return
        self._known = user
        held = self.held
        self._budget.change(self, -held)
        self.party, self._progressed = f"user {user}", self._budget.now()
        self._budget.change(self, held)

    def hold(self, part: int, size: int) -> bool:
        """So many bytes of the part from now on; False, and as many as before, when there is no room for more."""
        if self._closed:
            return True
        more = size - self._parts[part]
        if more > 0 and not self._budget.grants(self, more):
            return False
        if more:
            if not self.held:
                self._progressed = self._budget.now()
            self._parts[part] = size
            self._budget.change(self, more)
        return True

    def holds(self, part: int) -> int:
        return self._parts[part]

    def moves(self, size: int) -> None:
        """So many bytes came, or were taken."""
        self._moved += size
        if self._moved >= PROGRESS:
            self._moved = 0
            self._progressed = self._budget.now()

    def answered(self) -> None:
        """Its client has something to take now, or to send."""
        if self.held:
            self._progressed = self._budget.now()

    @property
    def quiet(self) -> float:
        """Seconds since its last progress; none of a connection that waits for us, or has nothing to tell."""
        if self.busy and self.held == self._parts[KEPT]:
            return 0.0
        return self._budget.now() - self._progressed

    def keep_until_sent(self, release: Callable[[], None]) -> None:
        """Have it called when the answer to what is being asked has left, or its connection has ended."""
        self.until_sent = release

    def sent(self) -> None:
        release, self.until_sent = self.until_sent, None
        if release is not None:
            release()

    def give_way(self) -> None:
        gives_way = self._gives_way
        self.close()
        gives_way()

    def close(self) -> None:
        """The connection has ended: it holds nothing any more, and nothing is left to send."""
        self._closed, self._gives_way = True, _nothing  # which would refer to the connection, and it to this
        self.sent()
        self._budget.change(self, -self.held)
        self._parts = [0, 0, 0]


class MemoryBudget:
    def __init__(self, shares: Shares | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.held = 0
        self._shares = shares or Shares()
        self._parties: dict[str, set[Account]] = {}
        """The accounts that hold something."""
        self._sums: dict[str, int] = {}

    def grants(self, account: Account, more: int) -> bool:
        shares, own = self._shares, self._sums.get(account.party, 0)
        if self.held + more <= shares.whole and own + more <= shares.party and account.held + more <= shares.connection:
            return True
        while True:
            quietest = {name: self._quietest(name, account) for name in self._parties}
            parties = {
                name: Party(self._sums[name], other.quiet if other is not None else 0.0)
                for name, other in quietest.items()
            }
            verdict = judge(shares, parties, account.party, more=more, connection=account.held)
            if not isinstance(verdict, MakesRoom) or (other := quietest[verdict.party]) is None:
                return isinstance(verdict, Granted)
            other.give_way()

    def change(self, account: Account, more: int) -> None:
        """An account holds more, or less."""
        if not more:
            return
        account.held += more
        self.held += more
        party = account.party
        self._sums[party] = self._sums.get(party, 0) + more
        accounts = self._parties.setdefault(party, set())
        if account.held:
            accounts.add(account)
            return
        accounts.discard(account)
        if not accounts:
            del self._parties[party], self._sums[party]

    def _quietest(self, party: str, asking: Account) -> Account | None:
        others = (account for account in self._parties[party] if account is not asking)
        return max(others, key=lambda account: account.quiet, default=None)


OF_PROCESS = MemoryBudget()
"""Of all servers of this process."""
