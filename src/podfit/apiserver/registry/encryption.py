"""Upstream's EncryptionConfiguration file (`--encryption-provider-config`), read into the store's rules.

    resources: [secrets]           as RESOURCE or RESOURCE.GROUP; *.GROUP, *. (the core group) and *.* take many
    providers: [aesgcm, identity]  the first writes, all of them read

A resource that is named twice follows the first entry.
"""

import base64
import binascii
from collections.abc import Callable
from pathlib import Path

import msgspec
import yaml

from podfit.api.meta.base import Document
from podfit.api.registry import resources
from podfit.apiserver.registry.stored import ROOT, prefix
from podfit.net.files import misread, read_given
from podfit.store.encrypted import PLAIN, AesCbc, AesGcm, Cipher, Rule
from podfit.store.protocol import StoreError

KIND, VERSION = "EncryptionConfiguration", "apiserver.config.k8s.io/v1"
AES: dict[str, Callable[[str, bytes], Cipher]] = {"aesgcm": AesGcm, "aescbc": AesCbc}
UNSUPPORTED = ("secretbox", "kms")


class EncryptionConfigError(StoreError):
    """What is wrong with the file, and where in it."""


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    secret: str


class _Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[_Key, ...] = ()


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resources: tuple[str, ...]
    providers: tuple[Document, ...]


class _Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    kind: str
    api_version: str
    resources: tuple[_Entry, ...]


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Raises EncryptionConfigError."""
    try:
        document = yaml.safe_load(read_given(path))
        found = msgspec.convert(document, _Configuration)
        if (found.kind, found.api_version) != (KIND, VERSION):
            raise EncryptionConfigError(f"it is {found.kind} of {found.api_version}, not {KIND} of {VERSION}")
        return tuple(_rule(entry, f"resources[{index}]") for index, entry in enumerate(found.resources))
    except (OSError, yaml.YAMLError, ValueError, EncryptionConfigError) as error:
        wanted = f"it has to hold an {KIND} of {VERSION}"
        raise EncryptionConfigError(f"--encryption-provider-config: {path} {misread(error)}; {wanted}") from error


def _rule(entry: _Entry, where: str) -> Rule:
    if not entry.resources or not entry.providers:
        raise EncryptionConfigError(f"{where} needs resources and providers")
    prefixes = tuple(prefix for resource in entry.resources for prefix in _prefixes(resource, where))
    places = ((provider, f"{where}.providers[{index}]") for index, provider in enumerate(entry.providers))
    return Rule(prefixes, tuple(cipher for provider, place in places for cipher in _ciphers(provider, place)))


def _prefixes(resource: str, where: str) -> tuple[str, ...]:
    """What the keys of a resource, or of all that a wildcard takes, begin with."""
    name, _, group = resource.partition(".")
    if resource == "*.*":
        return (f"{ROOT}/",)
    if resource == "*.":
        return tuple(prefix(info) for info in resources() if not info.group)
    if not name or "*" in group or (name == "*" and not group) or "/" in resource or resource != resource.lower():
        raise EncryptionConfigError(f"{where}: {resource!r} is no resource")
    start = f"{ROOT}/{group}/" if group else f"{ROOT}/"
    return (start if name == "*" else f"{start}{name}/",)


def _ciphers(provider: Document, where: str) -> tuple[Cipher, ...]:
    if len(provider) != 1:
        raise EncryptionConfigError(f"{where} has to name one provider")
    ((name, body),) = provider.items()
    if name == "identity":
        return (PLAIN,)
    if name not in AES:
        known = "is not supported" if name in UNSUPPORTED else "is not known"
        raise EncryptionConfigError(f"{where}: the provider {name} {known}; aesgcm, aescbc and identity are")
    keys = msgspec.convert(body or {}, _Keys).keys
    if not keys:
        raise EncryptionConfigError(f"{where}.{name} has no keys")
    if len({key.name for key in keys}) < len(keys):
        raise EncryptionConfigError(f"{where}.{name} has two keys of one name")
    return tuple(_cipher(name, key, f"{where}.{name}.keys[{index}]") for index, key in enumerate(keys))


def _cipher(provider: str, key: _Key, where: str) -> Cipher:
    if not key.name or ":" in key.name:
        raise EncryptionConfigError(f"{where}: {key.name!r} is no name")
    try:
        secret = base64.b64decode(key.secret, validate=True)
    except binascii.Error:
        raise EncryptionConfigError(f"{where}: the secret is not base64") from None
    if len(secret) not in (16, 24, 32):
        raise EncryptionConfigError(f"{where}: the secret has {len(secret)} bytes; AES takes 16, 24 or 32")
    return AES[provider](key.name, secret)
