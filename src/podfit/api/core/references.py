"""References from one object to another, or to a key inside one."""

from podfit.api.base import Struct, always
from podfit.core.quantity import Quantity


class LocalObjectReference(Struct):
    name: str = ""


class ObjectReference(Struct):
    name: str = ""
    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class ObjectFieldSelector(Struct):
    api_version: str = ""
    field_path: str = always(default="")


class ResourceFieldSelector(Struct):
    container_name: str = ""
    divisor: Quantity | None = None
    resource: str = always(default="")


class ConfigMapKeySelector(Struct):
    key: str = always(default="")
    name: str = ""
    optional: bool | None = None


class SecretKeySelector(Struct):
    key: str = always(default="")
    name: str = ""
    optional: bool | None = None


class FileKeySelector(Struct):
    key: str = always(default="")
    optional: bool | None = None
    path: str = always(default="")
    volume_name: str = always(default="")


class SecretReference(Struct):
    name: str = ""
    namespace: str = ""
