"""All names of a cluster, and what a question about them is answered.

    SERVICE.NAMESPACE.svc.ZONE and below     the records of Services (records.py)
    A-B-C-D.NAMESPACE.pod.ZONE               that address, in a namespace that there is (2.6 of the specification)
    dns-version.ZONE, ns.dns.ZONE, ZONE      TXT; the server itself; SOA and NS
    in-addr.arpa, ip6.arpa                   PTR of what Services have; what is not known is asked elsewhere

A name below which there are others exists without records (RFC 8020): it is answered with nothing, and no other name
of the zone exists.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address

import msgspec

from podfit.decide.dns.records import Record, RecordType, address_record

VERSION = "1.1.0"
REFRESH, RETRY, EXPIRE = 7200, 1800, 86400
MOST_CNAMES = 8
ANY, AXFR, IXFR = 255, 252, 251
NO_ERROR, SERVER_FAILURE, NAME_ERROR, NOT_IMPLEMENTED, REFUSED = 0, 2, 3, 4, 5
MOST_ADDITIONAL = 64
"""Addresses that come with SRV records unasked."""

Key = tuple[str, ...]


class Question(msgspec.Struct, frozen=True):
    """`name` in small letters without the last dot, `type` a number."""

    name: str
    type: int


class Answer(msgspec.Struct, frozen=True):
    """`code` is the response's. `follow` is a name outside of the cluster whose records belong to the answer."""

    code: int = NO_ERROR
    records: tuple[Record, ...] = ()
    authority: tuple[Record, ...] = ()
    additional: tuple[Record, ...] = ()
    follow: str = ""


class Zone:
    """`domain` is the cluster's; `server` the address of the Service `kube-dns`, empty when it is not known. `changes`
    counts what has changed.
    """

    def __init__(self, domain: str, server: str = "", *, serial: int = 0) -> None:
        self.domain = domain.strip(".").lower()
        self.server, self.serial = server, serial
        self.changes = 0
        self._of: dict[Key, tuple[Record, ...]] = {}
        self._records: dict[str, dict[Record, int]] = {}
        self._above: Counter[str] = Counter()
        self._namespaces: set[str] = set()

    @property
    def names(self) -> int:
        """How many have records of Services."""
        return len(self._records)

    def put(self, source: Key, records: tuple[Record, ...]) -> None:
        """From now on these are all the records of a Service, or of one of its slices."""
        old = self._of.get(source, ())
        if old == records:
            return
        self.changes += 1
        for record in records:
            self._add(record)
        for record in old:
            self._remove(record)
        if records:
            self._of[source] = records
        else:
            self._of.pop(source, None)

    def set_namespace(self, name: str, *, there: bool) -> None:
        if there is (name in self._namespaces):
            return
        self.changes += 1
        if there:
            self._namespaces.add(name)
        else:
            self._namespaces.discard(name)

    def set_server(self, address: str) -> None:
        if address != self.server:
            self.server = address
            self.changes += 1

    def _add(self, record: Record) -> None:
        own = self._records.setdefault(record.name, {})
        if not own:
            self._above.update(self._parents(record.name))
        own[record] = own.get(record, 0) + 1

    def _remove(self, record: Record) -> None:
        own = self._records[record.name]
        own[record] -= 1
        if not own[record]:
            del own[record]
        if not own:
            del self._records[record.name]
            for parent in self._parents(record.name):
                self._above[parent] -= 1
                if not self._above[parent]:
                    del self._above[parent]

    def _parents(self, name: str) -> Iterator[str]:
        """The names between a name of the zone and the zone."""
        while name.endswith(f".{self.domain}"):
            name = name.partition(".")[2]
            yield name

    # ---------------------------------------------------------------- what there is

    def holds(self, name: str) -> bool:
        """Whether nobody else is asked for it."""
        return name == self.domain or name.endswith(f".{self.domain}") or name in self._records

    def records(self, name: str) -> tuple[Record, ...] | None:
        """None when there is no such name, empty when it has no records."""
        if own := self._records.get(name):
            return tuple(own)
        if name == self.domain:
            return (self.soa(), Record(self.domain, RecordType.NS, f"ns.dns.{self.domain}"))
        return self._fixed(name.removesuffix(f".{self.domain}").split("."), name)

    def _fixed(self, labels: list[str], name: str) -> tuple[Record, ...] | None:
        match labels:
            case ["dns-version"]:
                return (Record(name, RecordType.TXT, VERSION),)
            case ["ns", "dns"]:
                return (address_record(name, self.server),) if self.server else ()
            case ["svc"] | ["pod"] | ["dns"]:
                return ()
            case [namespace, "svc" | "pod"] if namespace in self._namespaces:
                return ()
            case [text, namespace, "pod"] if namespace in self._namespaces:
                address = undashed(text)
                return (address_record(name, address),) if address else None
        return () if name in self._above else None

    def soa(self) -> Record:
        serial = (self.serial + self.changes) % (1 << 32)
        names = f"ns.dns.{self.domain} hostmaster.{self.domain}"
        numbers = (serial, REFRESH, RETRY, EXPIRE, 5)
        return Record(self.domain, RecordType.SOA, names, numbers)

    # ---------------------------------------------------------------- questions

    def answer(self, question: Question) -> Answer | None:
        """None for a name that is not the cluster's."""
        name, kind = question.name, question.type
        if kind in (AXFR, IXFR):
            return Answer(REFUSED)
        if not self.holds(name):
            return None
        records, follow, seen = list[Record](), "", set[str]()
        while name not in seen and len(seen) < MOST_CNAMES:
            seen.add(name)
            own = self.records(name)
            if own is None:  # a CNAME may lead to nothing
                return Answer(NO_ERROR if records else NAME_ERROR, tuple(records), () if records else (self.soa(),))
            wanted = _of_type(own, kind)
            records += wanted
            alias = next((record.value for record in own if record.type is RecordType.CNAME), "")
            if not alias or kind in (RecordType.CNAME, ANY):
                break
            records += [record for record in own if record.type is RecordType.CNAME]
            if not self.holds(alias):
                follow = alias
                break
            name = alias
        authority = () if records else (self.soa(),)
        return Answer(NO_ERROR, tuple(records), authority, self._additional(records), follow)

    def _additional(self, records: Iterable[Record]) -> tuple[Record, ...]:
        targets = dict.fromkeys(record.value for record in records if record.type is RecordType.SRV)
        found = list[Record]()
        for target in targets:
            if len(found) >= MOST_ADDITIONAL:
                break
            found += [one for one in self._records.get(target, ()) if one.type in (RecordType.A, RecordType.AAAA)]
        return tuple(found)


def _of_type(records: Iterable[Record], kind: int) -> list[Record]:
    """Asked for all kinds, one is enough (RFC 8482)."""
    if kind == ANY:
        first = min((record.type for record in records), default=0)
        return [record for record in records if record.type == first]
    return [record for record in records if record.type == kind]


def undashed(text: str) -> str:
    """The address that is written with dashes; empty for none."""
    try:
        if text.count("-") == 3:
            return str(IPv4Address(text.replace("-", ".")))
        return str(IPv6Address(text.replace("-", ":")))
    except ValueError:
        return ""
