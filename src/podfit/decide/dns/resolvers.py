"""What the host's resolvers answer: whether it is the answer, what of it is believed, and for how long.

another id, question or kind of message     not the answer, whoever sent it; after some of these a connection is used
records                                     those of the name that was asked for, and of names that it leads to by
                                            CNAME; what an answer says of other names is nobody's question
negative answers                            the SOA, if it is of a zone above the name
how long                                    the least TTL, within bounds
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from podfit.decide.dns.records import RecordType
from podfit.decide.dns.zone import NAME_ERROR, NO_ERROR, SERVER_FAILURE, Question

LEAST_SECONDS, MOST_SECONDS = 5, 30
"""Of an answer that is kept; CoreDNS' least, and what its usual configuration says (`cache 30`)."""
MOST_TTL = 7 * 86400
MOST_CHAIN = 16
MOST_RECORDS = 500
FALSE_ANSWERS = 3
"""So many answers to another question, and the next try is over TCP: somebody guesses."""


class Given(msgspec.Struct, frozen=True):
    """A record that somebody else has sent. `owner`, its name, and `data` are as in a packet, without compression;
    `target` is where a CNAME leads. `ttl` in seconds.
    """

    name: str
    type: int
    ttl: int
    owner: bytes
    data: bytes
    target: str = ""


class Reply(msgspec.Struct, frozen=True):
    """A message that has arrived; without `question` it has none or several."""

    id: int
    response: bool
    question: Question | None
    code: int = NO_ERROR
    truncated: bool = False
    answer: tuple[Given, ...] = ()
    authority: tuple[Given, ...] = ()


class Believed(msgspec.Struct, frozen=True):
    """What is told on, and kept for `seconds` (0: not at all)."""

    code: int
    records: tuple[Given, ...] = ()
    authority: tuple[Given, ...] = ()
    seconds: int = 0


FAILED = Believed(SERVER_FAILURE)


def is_answer(reply: Reply, number: int, asked: Question) -> bool:
    """`number` is the id of what was asked."""
    return reply.response and reply.id == number and reply.question == asked


def believed(asked: Question, reply: Reply) -> Believed:
    """What is believed of an answer to it."""
    if reply.code not in (NO_ERROR, NAME_ERROR):
        return Believed(reply.code)
    records = _chain(asked, reply.answer)
    authority = () if _final(asked, records) else tuple(one for one in reply.authority if _is_above(one, asked))[:1]
    ttls = [one.ttl for one in (*records, *authority)]
    seconds = min(max(min(ttls, default=LEAST_SECONDS), LEAST_SECONDS), MOST_SECONDS)
    return Believed(reply.code, records, authority, seconds)


def _chain(asked: Question, given: Iterable[Given]) -> tuple[Given, ...]:
    by_name = dict[str, list[Given]]()
    for record in given:
        by_name.setdefault(record.name, []).append(record)
    found, name = list[Given](), asked.name
    for _ in range(MOST_CHAIN):
        own = by_name.pop(name, [])
        found += [_bounded(record) for record in own if record.type == asked.type]
        alias = next((record for record in own if record.type == RecordType.CNAME), None)
        if alias is None or asked.type == RecordType.CNAME:
            break
        found.append(_bounded(alias))
        name = alias.target
    return tuple(found[:MOST_RECORDS])


def _bounded(record: Given) -> Given:
    """A TTL of more than 31 bits is none (RFC 2181, 8)."""
    ttl = record.ttl if 0 <= record.ttl < 1 << 31 else 0
    return replace(record, ttl=min(ttl, MOST_TTL))


def _final(asked: Question, records: Iterable[Given]) -> bool:
    return any(record.type == asked.type for record in records)


def _is_above(record: Given, asked: Question) -> bool:
    own = record.name == "" or asked.name == record.name or asked.name.endswith(f".{record.name}")
    return own and record.type == RecordType.SOA
