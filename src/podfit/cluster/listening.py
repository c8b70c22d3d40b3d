"""Where the API server listens, what it says of that to others, and the names in its certificate.

Loopback is the default: a cluster for trying things is nobody else's business. Pods share the network of their node, so
they reach a server there, too. `bind` is for nodes and clients on other machines, and for networks that have a gateway
on this one, such as a bridge.
"""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

import msgspec

from podfit.cluster.certificates import LOOPBACK
from podfit.cluster.errors import MachineError, UsageError
from podfit.net.addresses import outward

if TYPE_CHECKING:
    from podfit.net.http_server import HttpsServer

_NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """`advertise` is what others are told, by default found out from `bind`; `names` are more for the certificate."""

    bind: str = LOOPBACK
    advertise: str = ""
    names: tuple[str, ...] = ()

    def check(self) -> None:
        """UsageError for what is no address or name."""
        _address("--bind-address", self.bind)
        if self.advertise and _address("--advertise-address", self.advertise).is_unspecified:
            raise UsageError(f"--advertise-address {self.advertise!r} is nobody's address")
        for name in self.names:
            if not _NAME.fullmatch(name) and _parsed(name) is None:
                raise UsageError(f"--tls-san {name!r} is neither a DNS name nor an IP address")

    def arguments(self) -> list[str]:
        """On the command line; what is not as usual."""
        found = ["--bind-address", self.bind] if self.bind != LOOPBACK else []
        if self.advertise:
            found += ["--advertise-address", self.advertise]
        return found + (["--tls-san", ",".join(self.names)] if self.names else [])

    @property
    def everywhere(self) -> bool:
        return ip_address(self.bind).is_unspecified

    @property
    def local(self) -> bool:
        """Only this machine can connect."""
        return ip_address(self.bind).is_loopback

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where a server listens that this machine always finds on loopback."""
        covered = self.bind in (LOOPBACK, "0.0.0.0")
        return (self.bind,) if covered else (LOOPBACK, str(ip_address(self.bind)))

    @property
    def reachable(self) -> str:
        """An address at which this machine reaches a server that listens on `bind` alone."""
        if not self.everywhere:
            return str(ip_address(self.bind))
        return LOOPBACK if ip_address(self.bind).version == 4 else "::1"

    @property
    def advertised(self) -> str:
        """What clients in the cluster are told: the service `kubernetes`, the environment of containers, discovery."""
        if self.advertise:
            return str(ip_address(self.advertise))
        if not self.everywhere:
            return str(ip_address(self.bind))
        return outward(version=ip_address(self.bind).version) or self.reachable

    def hosts(self, service_address: str) -> tuple[str, ...]:
        """What the certificate names beside loopback. `service_address` is that of the service `kubernetes`."""
        own = [service_address, self.reachable, self.advertised]
        if not self.local and _NAME.fullmatch(hostname := socket.gethostname().lower()):
            own.append(hostname)
        return (*own, *(str(_parsed(name) or name) for name in self.names))


async def listen(https: "HttpsServer", addresses: tuple[str, ...], port: int, otherwise: str) -> int:
    """On one port of every address; which one. Raises MachineError, with the command that may do."""
    from podfit.net.http_server import PortInUse

    for address in addresses:
        try:
            port = await https.listen(address, port)
        except PortInUse as error:
            fix = (f"or take any free port:  {otherwise}",)
            raise MachineError(f"port {port} on {address} is in use by another program", fix=fix) from error
        except OSError as error:
            raise MachineError(f"cannot listen on {address}: {error}") from error
    return port


def url(address: str, port: int) -> str:
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def listening(bind: str, advertise: str, names: tuple[str, ...]) -> Listening:
    """As the flags say it; names may also come separated by commas."""
    return Listening(
        bind=bind, advertise=advertise, names=tuple(part.lower() for each in names for part in each.split(",") if part)
    )


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _address(flag: str, text: str) -> IPv4Address | IPv6Address:
    found = _parsed(text)
    if found is None:
        raise UsageError(f"{flag} {text!r} is not an IP address")
    return found
