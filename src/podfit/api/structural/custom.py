"""Custom resources as objects: a document with its schema.

Such a kind is a class too, made at run time from its CustomResourceDefinition: the metadata is typed as everywhere, the
rest stays a document under the kind's structural schema, which rides on the class as annotations ride on a Struct. So
whatever handles objects by their metadata (admission, deletion, managers of fields, lists, tables) handles these, and
only what looks inside asks the schema. The codec flattens `rest` when such an object is written.
"""

from typing import Any, ClassVar, TypeGuard, cast

import msgspec

from podfit.api.apiextensions.v1.types import CustomResourceSubresourceScale, JSONSchemaProps
from podfit.api.meta.base import Object, always
from podfit.api.meta.v1.types import ObjectMeta

OWN = ("kind", "apiVersion", "metadata")


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of a definition says of its objects. `has_status`: its status is written apart."""

    group: str
    version: str
    kind: str
    namespaced: bool
    schema: JSONSchemaProps
    has_status: bool = False
    scale: CustomResourceSubresourceScale | None = None


class Custom(Object):
    """`rest` is the object without its kind, API version and metadata; it is never changed in place."""

    declared: ClassVar[Declared]
    kind: str = always(default="")
    api_version: str = always(default="")
    metadata: ObjectMeta = always(default=ObjectMeta())
    rest: dict[str, Any] = msgspec.field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """What is written: the members in the order that stored objects begin with."""
        return {"kind": self.kind, "apiVersion": self.api_version, "metadata": self.metadata, **self.rest}


def custom_type(declared: Declared) -> type[Custom]:
    """The class of a declared kind in one of its versions."""
    version = f"{declared.group}/{declared.version}"
    fields: list[tuple[str, type, Any]] = [
        ("kind", str, always(default=declared.kind)),
        ("api_version", str, always(default=version)),
    ]
    own = {"declared": declared}
    made = msgspec.defstruct(declared.kind, fields, bases=(Custom,), namespace=own, kw_only=True, frozen=True)
    return cast(type[Custom], made)


def is_custom(kind: Any) -> TypeGuard[type[Custom]]:
    return isinstance(kind, type) and issubclass(kind, Custom)
