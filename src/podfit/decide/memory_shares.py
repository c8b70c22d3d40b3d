"""Shares of the memory for bodies and answers under way: who has room, and who makes room when it is short.

A party is who one can tell apart: a user, or an address of those who have not said who they are. No party holds more
than its share. When all of it is taken, who has been quiet makes room first, of them the party that holds most; when
nobody is quiet, whoever holds more than the one who asks would. So who asks for little is served beside any number of
slow ones, and one party alone cannot keep another from its share. Pure; `net.memory_budget` counts.
"""

from collections.abc import Mapping

import msgspec

MIB = 1 << 20
QUIET = 1.0  # seconds without progress, after which a connection makes room for another


class Shares(msgspec.Struct, frozen=True):
    """In bytes: of everybody together, of one party, of one connection."""

    whole: int = 128 * MIB
    party: int = 64 * MIB
    connection: int = 16 * MIB


class Party(msgspec.Struct, frozen=True):
    """What its connections hold in bytes, and for how many seconds the quietest of them has made no progress."""

    held: int = 0
    quiet: float = 0.0


class MakesRoom(msgspec.Struct, frozen=True):
    """The quietest connection of this party is closed, and the question asked again."""

    party: str


class Granted(msgspec.Struct, frozen=True):
    """There is room."""


class Refused(msgspec.Struct, frozen=True):
    """There is none, and nobody makes any."""


Verdict = Granted | Refused | MakesRoom


def judge(shares: Shares, parties: Mapping[str, Party], asking: str, *, more: int, connection: int) -> Verdict:
    """Whether a connection of the party `asking`, which holds `connection` bytes, may hold `more` bytes."""
    own = parties.get(asking, Party())
    if connection + more > shares.connection:
        return Refused()
    if own.held + more > shares.party:
        return MakesRoom(asking) if own.quiet >= QUIET else Refused()
    if sum(party.held for party in parties.values()) + more <= shares.whole:
        return Granted()
    quiet = [name for name, party in parties.items() if party.held and party.quiet >= QUIET]
    larger = [name for name, party in parties.items() if party.held > own.held + more]
    if candidates := quiet or larger:
        return MakesRoom(max(candidates, key=lambda name: parties[name].held))
    return Refused()
