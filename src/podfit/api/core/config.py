"""ConfigMaps, Secrets and ServiceAccounts."""

from typing import Annotated

from msgspec import field

from podfit.api.base import always, keyed, Object
from podfit.api.core.references import LocalObjectReference, ObjectReference
from podfit.api.meta import ObjectMeta


class ConfigMap(Object):
    kind: str = always("ConfigMap")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    binary_data: dict[str, bytes] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None


class Secret(Object):
    kind: str = always("Secret")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    type: str = ""
    data: dict[str, bytes] = field(default_factory=dict)
    immutable: bool | None = None
    string_data: dict[str, str] = field(default_factory=dict)


class ServiceAccount(Object):
    kind: str = always("ServiceAccount")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    secrets: Annotated[tuple[ObjectReference, ...], keyed("name")] = ()
