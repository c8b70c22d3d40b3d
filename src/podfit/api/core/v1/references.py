"""References from one object to another, or to a key inside one."""

from typing import ClassVar

from podfit.api.meta.base import Struct, always
from podfit.core.quantity import Quantity


class LocalObjectReference(Struct):
    whole: ClassVar[bool] = True
    name: str = ""


class ObjectReference(Struct):
    whole: ClassVar[bool] = True
    name: str = ""
    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class ObjectFieldSelector(Struct):
    whole: ClassVar[bool] = True
    api_version: str = ""
    field_path: str = always(default="")


class ResourceFieldSelector(Struct):
    whole: ClassVar[bool] = True
    container_name: str = ""
    divisor: Quantity | None = None
    resource: str = always(default="")


class ConfigMapKeySelector(Struct):
    whole: ClassVar[bool] = True
    key: str = always(default="")
    name: str = ""
    optional: bool | None = None


class SecretKeySelector(Struct):
    whole: ClassVar[bool] = True
    key: str = always(default="")
    name: str = ""
    optional: bool | None = None


class FileKeySelector(Struct):
    whole: ClassVar[bool] = True
    key: str = always(default="")
    optional: bool | None = None
    path: str = always(default="")
    volume_name: str = always(default="")


class SecretReference(Struct):
    whole: ClassVar[bool] = True
    name: str = ""
    namespace: str = ""


class TypedLocalObjectReference(Struct):
    whole: ClassVar[bool] = True
    name: str = always(default="")
    api_group: str | None = always(default=None)
    kind: str = always(default="")


class TypedObjectReference(Struct):
    name: str = always(default="")
    api_group: str | None = always(default=None)
    kind: str = always(default="")
    namespace: str | None = None
