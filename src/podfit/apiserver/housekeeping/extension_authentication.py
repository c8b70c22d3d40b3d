"""The ConfigMap `extension-apiserver-authentication`, by which extension API servers authenticate the front proxy.

They trust a client's certificate, or one of the front proxy and the headers in which it names the user. Several servers
on one store may have authorities of their own, so each adds what it is known by, and takes nothing away.
"""

import json
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.registry.stored import Changed, Stored
from podfit.core.errors import ApiError
from podfit.core.times import format_time

NAME, NAMESPACE = "extension-apiserver-authentication", "kube-system"
_END = "-----END CERTIFICATE-----"
_HEADERS = {
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
}


class ProxyCertificate(msgspec.Struct, frozen=True):
    """A certificate and its key (PEM), to be shown to backends."""

    certificate: bytes
    key: bytes


class FrontProxy(msgspec.Struct, frozen=True):
    """What this server shows to backends, who signed it (PEM), its common name, and who signs clients (PEM)."""

    proof: ProxyCertificate
    authority: bytes
    name: str
    clients: bytes


async def publish(context: Context, proxy: FrontProxy) -> None:
    objects = Stored[ConfigMap](context.store, info_for(ConfigMap))
    while True:
        old = await context.find(ConfigMap, NAME, NAMESPACE)
        data = with_front_proxy(proxy, old.data if old is not None else {})
        try:
            if old is None:
                now = format_time(context.clock.now())
                meta = ObjectMeta(name=NAME, namespace=NAMESPACE, uid=context.random.uuid(), creation_timestamp=now)
                await objects.create(ConfigMap(metadata=meta, data=data))
            elif data != old.data:
                version = int(old.metadata.resource_version)
                await objects.update(replace(old, data=data), expected=version, freeing=True)
            return
        except Changed:
            continue  # by another server that starts as well
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


def with_front_proxy(proxy: FrontProxy, before: dict[str, str]) -> dict[str, str]:
    """What was said before, and what this server adds to it."""
    lists = {key: (name,) for key, name in _HEADERS.items()} | {"requestheader-allowed-names": (proxy.name,)}
    bundles = {"client-ca-file": proxy.clients, "requestheader-client-ca-file": proxy.authority}
    return (
        before
        | {key: json.dumps(_together(_listed(before.get(key, "")), names)) for key, names in lists.items()}
        | {
            key: "".join(_together(_certificates(before.get(key, "")), _certificates(own.decode("ascii"))))
            for key, own in bundles.items()
        }
    )


def _together(*parts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for part in parts for value in part))


def _listed(text: str) -> list[str]:
    """What is no list of names counts as none."""
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        return []


def _certificates(bundle: str) -> list[str]:
    return [f"{part.strip()}\n{_END}\n" for part in bundle.split(_END)[:-1]]
