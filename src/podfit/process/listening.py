"""Listen addresses of the API server, the address it advertises, and the names in its certificate.

Loopback is the default: a cluster for trying things is nobody else's business. Pods share the network of their node, so
they reach a server there, too. `bind` is for nodes and clients on other machines, and for networks that have a gateway
on this one, such as a bridge.
"""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from podfit.core.errors import plainly
from podfit.core.options import LIST, Option
from podfit.net.addresses import LOOPBACK, PortInUse, outward
from podfit.process.data.other_clusters import cluster_on
from podfit.process.errors import MachineError, UsageError

if TYPE_CHECKING:
    from podfit.net.http_server import HttpsServer

_NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")


_NAMES = replace(LIST, read=lambda given: tuple(name.lower() for name in LIST.read(given)))


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """`advertise` is what others are told, by default found out from `bind`; `names` are more for the certificate."""

    bind: Annotated[
        tuple[str, ...],
        Option(
            "IP addresses to listen on, separated by commas; 0.0.0.0 for all. `up` listens on 127.0.0.1 besides.",
            flag="bind-address",
        ),
    ] = (LOOPBACK,)
    advertise: Annotated[
        str,
        Option("IP address that pods and other clients are told.", flag="advertise-address", usual="where it listens"),
    ] = ""
    names: Annotated[
        tuple[str, ...], Option("More names and addresses for its certificate.", flag="tls-san", unit=_NAMES)
    ] = ()
    gateway: str = ""
    """The address of this machine as the pods of its node see it, if the server is to be reached there."""

    def check(self) -> None:
        """UsageError for what is no address or name."""
        for address in self.bind:
            _address("--bind-address", address)
        if self.advertise and _address("--advertise-address", self.advertise).is_unspecified:
            raise UsageError(f"--advertise-address {self.advertise!r} is not an address that clients can reach")
        for name in self.names:
            if not _NAME.fullmatch(name) and _parsed(name) is None:
                raise UsageError(f"--tls-san {name!r} is neither a DNS name nor an IP address")

    @property
    def bound(self) -> tuple[str, ...]:
        """Where a server listens that keeps to `bind`: an address for all of a family stands for the others of it."""
        found = [ip_address(address) for address in self.bind]
        whole = {address.version for address in found if address.is_unspecified}
        return tuple(
            dict.fromkeys(str(address) for address in found if address.is_unspecified or address.version not in whole)
        )

    @property
    def local(self) -> bool:
        """Only this machine can connect."""
        return all(ip_address(address).is_loopback for address in self.bind)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where a server listens that this machine always finds on loopback."""
        return self.bound if {LOOPBACK, "0.0.0.0"} & {*self.bound} else (LOOPBACK, *self.bound)

    @property
    def reachable(self) -> str:
        """An address at which this machine reaches a server that keeps to `bind`."""
        first = ip_address(self.bound[0])
        if not first.is_unspecified:
            return str(first)
        return LOOPBACK if first.version == 4 else "::1"

    @property
    def advertised(self) -> str:
        """What clients in the cluster are told: the service `kubernetes`, the environment of containers, discovery.

        Of several addresses the first that is not this machine's alone.
        """
        if self.advertise:
            return str(ip_address(self.advertise))
        found = [ip_address(address) for address in self.bound]
        if self.gateway and self.local:
            return self.gateway
        chosen = next((address for address in found if not address.is_loopback), found[0])
        if not chosen.is_unspecified:
            return str(chosen)
        return outward(version=chosen.version) or self.reachable

    def hosts(self, service_address: str) -> tuple[str, ...]:
        """What the certificate names beside loopback. `service_address` is that of the service `kubernetes`."""
        own = [service_address, self.reachable, self.advertised, *([self.gateway] if self.gateway else [])]
        own += [address for address in self.bound if not ip_address(address).is_unspecified]
        if not self.local and _NAME.fullmatch(hostname := socket.gethostname().lower()):
            own.append(hostname)
        return (*own, *(str(_parsed(name) or name) for name in self.names))


async def listen(https: "HttpsServer", addresses: tuple[str, ...], port: int, otherwise: str) -> int:
    """On one port of every address; which one. Raises MachineError, with the command that may do."""
    for address in addresses:
        try:
            port = await https.listen(address, port)
        except PortInUse as error:
            raise _taken(address, port, otherwise) from error
        except OSError as error:
            raise MachineError(f"cannot listen on {address}: {plainly(error)}") from error
    return port


def _taken(address: str, port: int, otherwise: str) -> MachineError:
    """Named is a cluster of podfit; of other programs only that there is one."""
    found, free = cluster_on(port), f"or take any free port:  {otherwise}"
    if found is None:
        return MachineError(f"port {port} on {address} is in use by another program", fix=(free,))
    root, state = found
    holder = f"podfit (pid {state.pid}, started {state.started}, data directory {root})"
    fix = (f"see it:  podfit status --data {root}", free)
    return MachineError(f"port {port} on {address} is in use by {holder}", fix=fix)


def url(address: str, port: int) -> str:
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def port_of(server: str) -> int:
    """The port of what `url` made."""
    return int(server.rpartition(":")[2])


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
