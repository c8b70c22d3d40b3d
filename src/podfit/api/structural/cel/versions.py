"""Semantic versions and their order."""

import re
from typing import Any

from podfit.api.structural.cel.meter import Meter

_LONGEST_NUMBER = 1024
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class Version(tuple[Any, ...]):
    """A semantic version; one with a pre-release part is before the one without."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "Version":
        found = _VERSION.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
        if found is None or any(len(part) > 18 for part in found.groups()[:3]):
            raise ValueError(f"invalid semantic version {text[:64]!r}")
        later = tuple(_rank(part) for part in (found[4] or "").split(".") if part)
        return cls((int(found[1]), int(found[2]), int(found[3]), not found[4], later))


def _rank(part: str) -> tuple[bool, int, str]:
    return (not part.isdigit(), int(part[:18]) if part.isdigit() else 0, part)


def is_version(_: Meter, text: str, loose: bool = False) -> bool:
    try:
        Version.read(plain(text) if loose else text)
    except ValueError:
        return False
    return True


def plain(text: str) -> str:
    """Without `v` and zeros before a number, and with the parts that are left out."""
    parts = text.removeprefix("v").split(".", 2)
    return ".".join([part.lstrip("0") or "0" if part.isdigit() else part for part in parts] + ["0"] * (3 - len(parts)))
