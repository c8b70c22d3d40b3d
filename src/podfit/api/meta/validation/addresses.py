"""IP addresses and networks as texts."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from podfit.core.fields import FieldError, invalid

_NOT_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_LEADING = "must not have leading 0s"
_ZEROS, _LONGEST = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9])"), 64
_NOT_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
_LOCAL_GROUPS = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))


def parsed(text: str) -> IPv4Address | IPv6Address | None:
    """None for what is no address; a zone is no part of one."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def address(text: str, path: str) -> list[FieldError]:
    """An address that every reader takes for the same one."""
    found = parsed(text)
    if found is None:
        return [invalid(path, text, _LEADING if parsed(without_zeros(text)) else _NOT_IP)]
    return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")] if _is_mapped(found) else []


def _is_mapped(ip: IPv4Address | IPv6Address) -> bool:
    return isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None


def without_zeros(text: str) -> str:
    """Numbers between dots without zeros before them, which are read as decimal here and as octal there."""
    return _ZEROS.sub("", text) if "." in text and len(text) <= _LONGEST else text


def network(text: str, path: str) -> list[FieldError]:
    """`a.b.c.d/n`, without bits behind the prefix."""
    start, slash, length = text.partition("/")
    found = parsed(without_zeros(start))
    if found is None or not slash or not (length.isdecimal() and length.isascii()) or len(length) > 5:
        return [invalid(path, text, _NOT_CIDR)]
    if int(length) > found.max_prefixlen:
        return [invalid(path, text, _NOT_CIDR)]
    if parsed(start) is None or (len(length) > 1 and length.startswith("0")):
        return [invalid(path, text, "must not have leading 0s in IP or prefix length")]
    if _is_mapped(found):
        return [invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
    if ip_network(f"{found}/{int(length)}", strict=False).network_address != found:
        return [invalid(path, text, "must not have bits set beyond the prefix length")]
    return []


def ordinary(text: str, path: str) -> list[FieldError]:
    """An address that another machine could answer at."""
    found = parsed(without_zeros(text))
    if found is None:
        return [invalid(path, text, "must be a valid IP address")]
    errors = []
    if found.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if found.is_loopback:
        errors.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if found.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if any(found in group for group in _LOCAL_GROUPS if group.version == found.version):
        errors.append(invalid(path, text, _MULTICAST))
    return errors


def family(text: str) -> str:
    """`IPv4` or `IPv6`, of a text that is an address; empty for another."""
    found = parsed(text)
    return f"IPv{found.version}" if found else ""
