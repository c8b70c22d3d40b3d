"""ConfigMaps, Secrets and ServiceAccounts."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.references import LocalObjectReference, ObjectReference
from podfit.api.meta.base import Object, always, keyed
from podfit.api.meta.v1.types import ObjectMeta


class ConfigMap(Object):
    kind: str = always(default="ConfigMap")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    binary_data: dict[str, bytes] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None


class Secret(Object):
    kind: str = always(default="Secret")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    type: str = ""
    data: dict[str, bytes] = field(default_factory=dict)
    immutable: bool | None = None
    string_data: dict[str, str] = field(default_factory=dict)


class ServiceAccount(Object):
    kind: str = always(default="ServiceAccount")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    secrets: Annotated[tuple[ObjectReference, ...], keyed("name")] = ()
