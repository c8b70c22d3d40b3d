"""Registry credentials: which entries of imagePullSecrets match an image.

    .dockerconfigjson   {"auths": {"registry:5000/team": {"username": …, "password": …, "auth": "base64 of both"}}}
    .dockercfg          the same without "auths"

A key is a host, perhaps with a port and the beginning of a path; `*` stands for any letters within one label of the
host. A scheme before it and `/v1/` or `/v2/` behind it say nothing. The longest key comes first.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

DOCKER_HUB = "index.docker.io"
_SAME = {"docker.io": DOCKER_HUB, "registry-1.docker.io": DOCKER_HUB}
_CONFIG_JSON, _CONFIG = ".dockerconfigjson", ".dockercfg"


class Credential(msgspec.Struct, frozen=True):
    username: str
    password: str


def credentials(image: str, secrets: Iterable[Mapping[str, bytes]]) -> tuple[Credential, ...]:
    """To be tried one after the other. What is no such secret, or cannot be read, has none."""
    place = _place(image)
    found = [
        (key, credential)
        for secret in secrets
        for written, entry in _entries(secret)
        if _matches(key := _plain(written), place) and (credential := _credential(entry)) is not None
    ]
    found.sort(key=lambda pair: len(pair[0]), reverse=True)
    return tuple(dict.fromkeys(credential for _, credential in found))


def _place(image: str) -> str:
    """Host and path of an image's name, without tag and digest."""
    name = image.partition("@")[0]
    first, slash, rest = name.partition("/")
    if not slash or not (first == "localhost" or "." in first or ":" in first):
        first, rest = DOCKER_HUB, name
    head, colon, tag = rest.rpartition(":")
    return f"{_SAME.get(first, first)}/{head if colon and '/' not in tag else rest}"


def _entries(secret: Mapping[str, bytes]) -> Iterable[tuple[str, Any]]:
    try:
        if _CONFIG_JSON in secret:
            entries = msgspec.json.decode(secret[_CONFIG_JSON]).get("auths")
        else:
            entries = msgspec.json.decode(secret.get(_CONFIG, b"{}"))
    except (msgspec.DecodeError, AttributeError):
        return ()
    return entries.items() if isinstance(entries, dict) else ()


def _plain(key: str) -> str:
    """Host and path alone."""
    plain = key.partition("://")[2] or key
    for version in ("/v1", "/v2"):
        plain = plain.rstrip("/").removesuffix(version)
    return plain


def _matches(key: str, place: str) -> bool:
    host, _, path = key.partition("/")
    host = _SAME.get(host, host)
    its_host, _, its_path = place.partition("/")
    labels, its_labels = host.split("."), its_host.split(".")
    if len(labels) != len(its_labels) or not all(map(fnmatchcase, its_labels, labels)):
        return False
    return not path or its_path == path or its_path.startswith(f"{path}/")


def _credential(entry: Any) -> Credential | None:
    if not isinstance(entry, dict):
        return None
    username, password = entry.get("username"), entry.get("password")
    if isinstance(username, str) and isinstance(password, str):
        return Credential(username, password)
    try:
        both = base64.b64decode(entry.get("auth") or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, TypeError, ValueError):
        return None
    username, colon, password = both.partition(":")
    return Credential(username, password) if colon else None
