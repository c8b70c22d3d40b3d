"""Content negotiation: which form of an answer a client accepts.

As upstream reads it: offers by their `q`, whole types before ranges; an offer whose parameters cannot be met is passed
over. Routes of built-in kinds look at the names of the types first (`accepts`), before anybody looks at parameters.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from podfit.core.bounded_cache import cached_where_short

JSON, YAML = "application/json", "application/yaml"


WATCH = "watch"
T = TypeVar("T")


class Offer(msgspec.Struct, frozen=True):
    """A media type of an Accept header; `kind` may be a range such as `application/*`."""

    kind: str
    parameters: Mapping[str, str] = {}
    quality: float = 1.0

    def covers(self, kind: str) -> bool:
        return self.kind in (kind, "*/*", f"{kind.partition('/')[0]}/*")


def negotiated(header: str, kinds: tuple[str, ...], form: Callable[[str, Mapping[str, str]], T | None]) -> T | None:
    """The first form that `form(kind, parameters)` knows of what is offered. `kinds` are the server's own, best first.

    Without a header the first kind without parameters. None when nothing is acceptable.
    """
    if not header:
        return form(kinds[0], {})
    for offer in offers(header):
        for kind in kinds:
            if offer.covers(kind) and (found := form(kind, offer.parameters)) is not None:
                return found
    return None


def accepts(header: str, kinds: tuple[str, ...]) -> bool:
    """Whether one of the types is named as it is, or all are taken; ranges of types do not count."""
    named = {offer.partition(";")[0].strip() for offer in header.split(",")}
    return not header or "*/*" in named or not named.isdisjoint(kinds)


@cached_where_short(256, longest=1024)
def offers(header: str) -> tuple[Offer, ...]:
    """Those that can be understood, best first."""
    found: list[Offer] = []
    for part in header.split(","):
        offer = _offer(part.strip())
        if offer is None:
            continue
        place = len(found)
        while place and _before(offer, found[place - 1]):
            place -= 1
        found.insert(place, offer)
    return tuple(found)


def _before(offer: Offer, other: Offer) -> bool:
    """Upstream's order, which is none in the strict sense: insertion makes it what it is there."""
    if offer.quality > other.quality:
        return True
    mine, theirs = offer.kind.split("/"), other.kind.split("/")
    return (mine[0] != "*" and theirs[0] == "*") or (mine[1] != "*" and theirs[1] == "*")


def _offer(text: str) -> Offer | None:
    name, *rest = text.split(";")
    first, _, second = name.partition("/")
    if "/" in second or (not second and first.strip() != "*"):
        return None
    kind = f"{first.strip()}/{second.strip() if second else '*'}"
    parameters: dict[str, str] = {}
    quality = 1.0
    for part in rest:
        token, _, value = part.partition("=")
        if not value or "=" in value:
            continue
        if token.strip() == "q":
            quality = _number(value)
        else:
            parameters[token.strip()] = value.strip()
    return Offer(kind, parameters, quality)


def _number(text: str) -> float:
    """0 for what is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
