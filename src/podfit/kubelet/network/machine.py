"""What the clusters of one machine share: which ranges of addresses are whose, and switches of the kernel.

    /run/podfit-network/            gone with a reboot, as what it tells of is, and with the last cluster
      ranges.json      {"podfit-1a2b": ["10.244.0.0/16"]}              by the cluster's tag
      switches.json    {"net/ipv4/ip_forward": {"before": "0", "users": ["podfit-1a2b"]}}

Whoever sets a switch first notes what it was; the last one that needs it sets it back, unless somebody else has changed
it since. A cluster that was killed is a user until `podfit down` takes it down.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TypeVar

import msgspec

from podfit.decide.node.pod_network import FORWARDING, free_range, meets
from podfit.net.files import write_whole

log = logging.getLogger(__name__)

SHARED = Path("/run/podfit-network")
PROC = Path("/proc")
ON = "1"
T = TypeVar("T")


class RangeTaken(Exception):
    """The text says by whom."""


class Switch(msgspec.Struct, frozen=True):
    before: str
    users: tuple[str, ...] = ()


class SharedNetwork(msgspec.Struct, frozen=True):
    """The machine as the cluster of this `tag` uses it. Every method may raise OSError."""

    tag: str
    shared: Path = SHARED
    proc: Path = PROC

    def claim(self, wanted: str = "") -> str:
        """This network is ours from now on; without one the first that nobody uses. Raises RangeTaken."""
        with self._alone():
            claims = self._ranges()
            others = {network: tag for tag, networks in claims.items() if tag != self.tag for network in networks}
            network = wanted or free_range([*others, *self.routed(own=claims.get(self.tag, ()))])
            if not network:
                raise RangeTaken("every range for pods is in use on this machine: name one with --cluster-cidr")
            if other := meets(network, others):
                raise RangeTaken(f"{network} meets {other}, which {others[other]} on this machine uses for its pods")
            own = (*(one for one in claims.get(self.tag, ()) if one != network), network)
            self._write("ranges.json", claims | {self.tag: own})
            return network

    def claimed(self) -> tuple[str, ...]:
        """The networks that are ours."""
        return self._ranges().get(self.tag, ())

    def forward(self) -> bool:
        """Let pods reach each other; whether that was off before."""
        with self._alone():
            switches = self._switches()
            place = self.proc / "sys" / FORWARDING
            now = place.read_text().strip()
            known = switches.get(FORWARDING) or Switch(now)
            users = tuple(sorted({*known.users, self.tag}))
            self._write("switches.json", switches | {FORWARDING: Switch(known.before, users)})
            if now != ON:
                place.write_text(ON)
            return known.before != ON

    def release(self) -> None:
        """Nothing of the cluster is on the machine any more."""
        if not self.shared.is_dir():
            return
        with self._alone():
            ranges = {tag: own for tag, own in self._ranges().items() if tag != self.tag}
            self._write("ranges.json", ranges)
            kept = dict[str, Switch]()
            for name, switch in self._switches().items():
                users = tuple(user for user in switch.users if user != self.tag)
                if users:
                    kept[name] = Switch(switch.before, users)
                elif switch.users:
                    self._set_back(self.proc / "sys" / name, switch.before)
            self._write("switches.json", kept)
            if not ranges and not kept:
                shutil.rmtree(self.shared)

    def routed(self, *, own: Iterable[str] = ()) -> tuple[str, ...]:
        """Networks that the machine has a route to, without the default, and without those within `own`."""
        ours = [IPv4Network(network) for network in own]
        found = [route.network for route in routes(self.proc) if route.network.prefixlen]
        return tuple(str(one) for one in found if not any(one.subnet_of(network) for network in ours))

    def _set_back(self, place: Path, before: str) -> None:
        if before != ON and place.read_text().strip() == ON:
            place.write_text(before)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile. The last one has removed the directory, perhaps while we waited for it."""
        while True:
            self.shared.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(self.shared, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.fstat(handle).st_nlink:
                    yield
                    return
            finally:
                os.close(handle)

    def _ranges(self) -> dict[str, tuple[str, ...]]:
        return self._read("ranges.json", dict[str, tuple[str, ...]])

    def _switches(self) -> dict[str, Switch]:
        return self._read("switches.json", dict[str, Switch])

    def _read(self, name: str, kind: type[T]) -> T:
        """Empty where there is nothing, and where it is damaged: then what it knew is lost, as after a reboot."""
        try:
            return msgspec.json.decode((self.shared / name).read_bytes(), type=kind)
        except FileNotFoundError:
            return kind()
        except msgspec.DecodeError as error:
            log.warning("damaged, begun anew file=%s error=%s", self.shared / name, error)
            return kind()

    def _write(self, name: str, value: object) -> None:
        write_whole(self.shared / name, msgspec.json.encode(value))


class Route(msgspec.Struct, frozen=True):
    interface: str
    network: IPv4Network


def routes(proc: Path = PROC) -> tuple[Route, ...]:
    """The routes of IPv4, as /proc/net/route has them: numbers in hexadecimal, the last byte first."""
    rows = [line.split() for line in (proc / "net/route").read_text().splitlines()[1:]]
    return tuple(Route(row[0], IPv4Network((_address(row[1]), str(_address(row[7]))))) for row in rows if len(row) > 7)


def interface_of(address: str, proc: Path = PROC) -> str:
    """The node's end of the veth of the pod with that address; empty without one."""
    wanted = IPv4Network(address)
    return next((route.interface for route in routes(proc) if route.network == wanted), "")


def mtu(proc: Path = PROC, interfaces: Path = Path("/sys/class/net")) -> int:
    """The size of packets that the machine's default route takes; 1500 without one."""
    name = next((route.interface for route in routes(proc) if not route.network.prefixlen), "")
    try:
        return int((interfaces / name / "mtu").read_text())
    except (OSError, ValueError):
        return 1500


def _address(field: str) -> IPv4Address:
    return IPv4Address(int.from_bytes(bytes.fromhex(field), "little"))
