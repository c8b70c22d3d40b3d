"""IP addresses and networks as texts."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from podfit.core.fields import FieldError, invalid

_NOT_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
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
    return [] if parsed(text) else [invalid(path, text, _NOT_IP)]


def network(text: str, path: str) -> list[FieldError]:
    """`a.b.c.d/n`; bits behind the prefix are allowed."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return [invalid(path, text, _NOT_CIDR)]
    return [] if "/" in text else [invalid(path, text, _NOT_CIDR)]


def ordinary(text: str, path: str) -> list[FieldError]:
    """An address that another machine could answer at."""
    found = parsed(text)
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
