"""`Member`: the schema of one field as patch and apply need it, from a Struct or from a CRD's schema."""

from abc import ABC, abstractmethod
from typing import Any, Literal, TypeAlias

import msgspec

from podfit.api.meta.base import Listing, Struct

Shape = Literal["struct", "list", "map", "scalar", "any"]


class Node(ABC):
    """An object that no Struct declares. `whole`: owned as one field; `open`: it may hold more than its members."""

    whole: bool
    open: bool

    @abstractmethod
    def members(self) -> dict[str, "Member"]:
        """What it declares, by name."""


Kind: TypeAlias = type[Struct] | Node


class Member(msgspec.Struct, frozen=True):
    """One field. `item` is the kind of a struct, or of the items of a list or map; None where those are no objects.
    `zero` is what a null in a map of scalars means. `scalar` is the only type that a value, or an item of a list or
    map, may have when it is applied: string, numeric or boolean; empty where there are several.
    """

    attribute: str
    shape: Shape
    item: Kind | None
    listing: Listing
    zero: str | None = None
    keys: tuple[tuple[str, Any], ...] = ()
    """The keys of a list's items, sorted, each with its value where an item does not give it."""
    scalar: str = ""
