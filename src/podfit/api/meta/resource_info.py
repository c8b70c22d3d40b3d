"""`ResourceInfo`: the declaration of a kind.

It is a kind's Struct, its names, its subresources, the fields it can be selected by and the columns that `kubectl get`
shows.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podfit.api.meta.base import Object

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
EDIT = ("get", "patch", "update")


class Subresource(msgspec.Struct, frozen=True):
    """`kind` (with group and version) is what travels, when it is not the parent's own; `struct` says where it
    is an object that documents describe."""

    name: str
    verbs: tuple[str, ...] = EDIT
    kind: str = ""
    group: str = ""
    version: str = ""
    struct: type[Object] | None = None


STATUS = Subresource("status")
_OF_ALL: Mapping[str, Callable[[Any], str]] = {
    "metadata.name": lambda obj: obj.metadata.name,
    "metadata.namespace": lambda obj: obj.metadata.namespace,
}
"""Field selectors of every kind."""


class Column(msgspec.Struct, frozen=True):
    """A column of a Table. `priority` above 0 shows only with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Conversion(msgspec.Struct, frozen=True, eq=False):
    """How objects of a version become those that are stored (`kept`), and how stored ones are shown in it."""

    stored: "ResourceInfo"
    shown: Callable[[Any], Any]
    kept: Callable[[Any], Any]


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    type: type[Object]
    group: str = ""
    version: str = "v1"
    resource: str
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    created_by_update: bool = False
    """Whether a PUT to a name that is free creates the object."""
    propagation: str = "Background"
    """What a deletion that does not say so itself does about dependents: Background, or Orphan for old kinds."""
    upstream_key: str = ""
    """Where upstream's store has the objects, where it is not under the resource's name: texts of errors show it."""
    stored_as: str = ""
    """The version in which objects are stored, where it is another."""
    unconditional: bool = True
    """Whether a PUT may leave out the resource version that it replaces."""
    subresources: tuple[Subresource, ...] = ()
    columns: tuple[Column, ...] = ()
    row: Callable[[Any, str], list[Any]] | None = None
    """Cells of one object under `columns`; the second argument is the present, RFC 3339, for ages."""
    row_conditions: Callable[[Any], list[dict[str, str]]] | None = None
    """What a table says of the row itself, such as that the object has ended."""
    fields: Mapping[str, Callable[[Any], str]] = msgspec.field(default_factory=dict)
    """Field selectors beyond metadata.name and metadata.namespace."""
    unselectable: str = "field label not supported: {}"
    """What is said of a field that a kind with fields of its own cannot be selected by."""
    conversion: Conversion | None = None
    """For a version that is not stored: what it is stored as."""
    warning: str = ""
    """What whoever uses the kind in this version is warned of: that it is deprecated."""
    counted: Callable[[Any], Any] | None = None
    """The part of an object whose changes its generation counts; None for a kind without a generation."""
    first_generation: int = 1

    @property
    def home(self) -> "ResourceInfo":
        """The kind under which its objects are stored."""
        return self.conversion.stored if self.conversion else self

    @property
    def kind(self) -> str:
        return self.type.__name__

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def warnings(self) -> tuple[str, ...]:
        return (self.warning,) if self.warning else ()

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def readable(self) -> bool:
        """Whether there are objects of it; of reviews there are only questions and answers."""
        return "get" in self.verbs

    @property
    def stored(self) -> bool:
        """Whether its objects are in the store, where each of their changes is seen."""
        return "watch" in self.verbs

    @property
    def has_status(self) -> bool:
        """Whether its status is written apart from the rest."""
        return any(subresource.name == "status" for subresource in self.subresources)

    def reader(self, path: str) -> Callable[[Any], str]:
        """Of the value that a field selector sees at a path by which the kind can be selected."""
        return self.fields[path] if path in self.fields else _OF_ALL[path]

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of an object, or of its subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.resource, *filter(None, (name, subresource))]
        return "/".join(parts)
