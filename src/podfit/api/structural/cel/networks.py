"""Kubernetes' CEL libraries for IP addresses, CIDRs and URLs."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from podfit.api.structural.cel.meter import Meter

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*+):(?://(?:[^@/?#\s]*+@)?(?P<host>\[[0-9A-Fa-f:.]++\]|[^:/?#\s]*+)"
    r"(?::(?P<port>\d*+))?)?|(?=/))(?P<path>[^?#\s]*+)(?:\?(?P<query>[^#\s]*+))?(?:#\S*+)?"
)
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")
_LONGEST_ADDRESS = 64


@dataclass(frozen=True, slots=True)
class Network:
    """A prefix; the address may have more bits than it."""

    address: Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def version(self) -> int:
        return self.address.version

    def holds(self, address: Address) -> bool:
        shift = address.max_prefixlen - self.bits
        return address.version == self.version and int(address) >> shift == int(self.address) >> shift


@dataclass(frozen=True, slots=True)
class Url:
    text: str
    scheme: str
    host: str
    port: str
    path: str
    query: str

    def __str__(self) -> str:
        return self.text


def address(text: str) -> Address:
    """Raises ValueError. Neither zones nor IPv4 within IPv6 are addresses here."""
    try:
        if len(text) > _LONGEST_ADDRESS or "%" in text:
            raise ValueError
        found = ipaddress.ip_address(text)
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
            raise ValueError
    except ValueError:
        raise ValueError(f'IP Address "{text[:256]}" parse error during conversion from string') from None
    return found


def network(text: str) -> Network:
    """Raises ValueError."""
    written, _, bits = text.partition("/")
    try:
        found = address(written)
        if not re.fullmatch(r"0|[1-9]\d{0,2}", bits) or int(bits) > found.max_prefixlen:
            raise ValueError
    except ValueError:
        raise ValueError(f"network address parse error during conversion from string: {text[:256]}") from None
    return Network(found, int(bits))


def url(text: str) -> Url:
    """Raises ValueError."""
    parts = _URL.fullmatch(text)
    if parts is None:
        raise ValueError(f"URL parse error during conversion from string: {text[:256]}")
    return Url(text, *(parts[name] or "" for name in ("scheme", "host", "port", "path", "query")))


def _is(read: Any) -> Any:
    def check(_: Meter, text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _unquoted(text: str) -> str:
    raw = _QUOTED.sub(lambda match: bytes([int(match[1], 16)]), text.replace("+", " ").encode())
    return raw.decode(errors="replace")


def _query(_meter: Meter, given: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in filter(None, given.query.split("&")):
        name, _, value = part.partition("=")
        found.setdefault(_unquoted(name), []).append(_unquoted(value))
    return found


def _ip(_: Meter, value: Any) -> Address:
    return value.address if isinstance(value, Network) else address(value)


def _contains_ip(_: Meter, within: Network, other: Any) -> bool:
    return within.holds(address(other) if isinstance(other, str) else other)


def _contains_cidr(_: Meter, within: Network, other: Any) -> bool:
    inner = network(other) if isinstance(other, str) else other
    return within.bits <= inner.bits and within.holds(inner.address)


def _masked(_: Meter, given: Network) -> Network:
    shift = given.address.max_prefixlen - given.bits
    return Network(type(given.address)(int(given.address) >> shift << shift), given.bits)


def _is_link_local_multicast(_: Meter, given: Address) -> bool:
    return given in ipaddress.ip_network("224.0.0.0/24" if given.version == 4 else "ff02::/16")


NETWORK_FUNCTIONS: dict[str, Any] = {
    "ip": _ip,
    "isIP": _is(address),
    "ip.isCanonical": lambda _, text: str(address(text)) == text,
    "family": lambda _, given: given.version,
    "isUnspecified": lambda _, given: given.is_unspecified,
    "isLoopback": lambda _, given: given.is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda _, given: given.is_link_local,
    "isGlobalUnicast": lambda _, given: (
        not (
            given.is_multicast
            or given.is_loopback
            or given.is_link_local
            or given.is_unspecified
            or str(given) == "255.255.255.255"
        )
    ),
    "cidr": lambda _, text: network(text),
    "isCIDR": _is(network),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": lambda _, given: given.bits,
    "masked": _masked,
    "url": lambda _, text: url(text),
    "isURL": _is(url),
    "getScheme": lambda _, given: given.scheme,
    "getHost": lambda _, given: f"{given.host}:{given.port}" if given.port else given.host,
    "getHostname": lambda _, given: given.host.strip("[]"),
    "getPort": lambda _, given: given.port,
    "getEscapedPath": lambda _, given: given.path,
    "getQuery": _query,
}
