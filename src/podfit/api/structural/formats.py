"""String formats of schemas (`date-time`, `byte`, `cidr`, …). Unknown formats are not checked."""

import base64
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime

_AMOUNT = r"(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[+-]?({_AMOUNT})+|[+-]?0")
_SPELLED = re.compile(r"\d+\s*(weeks?|w|days?|d|hours?|h|minutes?|m|seconds?|s|milliseconds?|ms|microseconds?|us)")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
_UUID = r"[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?%s[0-9A-Fa-f]{3}-?%s[0-9A-Fa-f]{3}-?[0-9A-Fa-f]{12}"
_LABEL = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HEX = "[0-9A-Fa-f]"


def fits(text: str, name: str) -> bool:
    check = _FORMATS.get(name.replace("-", ""))
    return check is None or check(text)


def _like(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and _reads(datetime.fromisoformat)(text.upper())


def _is_base64(text: str) -> bool:
    return _reads(lambda encoded: base64.b64decode(encoded, validate=True))(text)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "datetime": _is_time,
    "date": lambda text: re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None and _reads(date.fromisoformat)(text),
    "duration": lambda text: bool(_DURATION.fullmatch(text) or _SPELLED.fullmatch(text)),
    "byte": _is_base64,
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "ip": _reads(ipaddress.ip_address),
    "cidr": lambda text: "/" in text and _reads(lambda network: ipaddress.ip_network(network, strict=False))(text),
    "uuid": _like(_UUID % (_HEX, _HEX)),
    "uuid3": _like(_UUID % ("3", _HEX)),
    "uuid4": _like(_UUID % ("4", "[89abAB]")),
    "uuid5": _like(_UUID % ("5", "[89abAB]")),
    "mac": _like(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}"),
    "hostname": _like(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*"),
    "email": _like(r"[^@\s<>]+@[^@\s<>]+"),
    "uri": _like(r"[A-Za-z][A-Za-z0-9+.-]*:\S+|/\S*"),
    "hexcolor": _like(rf"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _like(r"rgb\(\s*\d{1,3}%?\s*,\s*\d{1,3}%?\s*,\s*\d{1,3}%?\s*\)"),
    "k8sshortname": _like(r"(?=.{1,63}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    "k8slongname": _like(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
}
