"""What resolvers have sent, read by dnspython: names with references, records of any kind.

Importing it takes 90 ms and 3 MB, more than anything else of the name server, which answers the cluster's names without
it: it is loaded, beside the loop, with the first question for resolvers (`load`).
"""

import importlib
from typing import TYPE_CHECKING

from podfit.decide.dns.records import RecordType
from podfit.decide.dns.resolvers import Given, Reply
from podfit.decide.dns.zone import SERVER_FAILURE, Question
from podfit.dns.wire import IN, name_text

if TYPE_CHECKING:
    import dns.name
    import dns.rrset

LARGEST_REPLY = 16384
"""Bytes; what is larger is not read."""


class Unreadable(Exception):
    """It is no message of DNS."""


def load() -> None:
    """What reading takes, with the records that are not rare."""
    importlib.import_module("dns.message")
    for kind in ("CNAME", "SOA", "MX", "TXT", "PTR"):
        importlib.import_module(f"dns.rdtypes.ANY.{kind}")
    for kind in ("A", "AAAA", "SRV", "HTTPS"):
        importlib.import_module(f"dns.rdtypes.IN.{kind}")


def read_reply(data: bytes) -> Reply:
    """Raises Unreadable."""
    if len(data) > LARGEST_REPLY:
        raise Unreadable
    import dns.exception
    import dns.flags
    import dns.message
    import dns.opcode

    try:
        message = dns.message.from_wire(data, one_rr_per_rrset=True)
    except dns.exception.DNSException as error:
        raise Unreadable from error
    asked = [one for one in message.question if one.rdclass == IN]
    question = (
        Question(_text(asked[0].name), int(asked[0].rdtype)) if len(asked) == len(message.question) == 1 else None
    )
    code = int(message.rcode())
    return Reply(
        id=message.id,
        response=bool(message.flags & dns.flags.QR) and message.opcode() == dns.opcode.QUERY,
        question=question,
        code=code if code < 16 else SERVER_FAILURE,
        truncated=bool(message.flags & dns.flags.TC),
        answer=_given(message.answer),
        authority=_given(message.authority),
    )


def _given(rrsets: "list[dns.rrset.RRset]") -> tuple[Given, ...]:
    return tuple(
        Given(
            name=_text(rrset.name),
            type=int(rrset.rdtype),
            ttl=rrset.ttl,
            owner=rrset.name.to_digestable(),
            data=rdata.to_wire() or b"",
            target=_text(rdata.target) if int(rrset.rdtype) == RecordType.CNAME else "",
        )
        for rrset in rrsets
        if rrset.rdclass == IN
        for rdata in rrset
    )


def _text(name: "dns.name.Name") -> str:
    return name_text(name.to_digestable())
