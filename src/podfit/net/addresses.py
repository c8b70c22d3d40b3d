"""This machine's addresses, under which it and others reach it."""

import errno
import fcntl
import socket
import struct
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
_SOMEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}  # kept for documentation: nobody's
_SIOCGIFADDR = 0x8915


class PortInUse(OSError):
    """Something else listens there already."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} on {host} is in use")
        self.host = host
        self.port = port


def outward(*, version: int) -> str:
    """The machine's own address (of IPv4 or IPv6) on the way to the world; empty where there is no way.

    Connecting a datagram socket only looks at the routes: nothing is sent.
    """
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_SOMEWHERE[family], 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def own_address() -> str:
    """The machine's address for others: of the default route, else the first that an interface has; empty when there
    is only loopback.
    """
    ways = (outward(version=4), *interface_addresses(), outward(version=6))
    return next((way for way in ways if way and not ip_address(way).is_loopback), "")


def interface_addresses() -> tuple[str, ...]:
    """The IPv4 addresses of this machine's interfaces that are no loopback. Only Linux tells them so."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue
            found.append(socket.inet_ntoa(answer[20:24]))
    return tuple(address for address in found if not ip_address(address).is_loopback)


def is_loopback_url(url: str) -> bool:
    """Whether only this machine reaches the server of a URL."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
