"""Reads `--config` files with upstream's field names.

A field that is not known is refused by name, and so is a value that would be something else than it says.
"""

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from podfit.core.durations import parse_duration
from podfit.net.files import flat
from podfit.process.errors import UsageError, reason

MOST_BYTES = 1 << 20

T = TypeVar("T", bound="Strict")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Fields in upstream's spelling; others are refused."""


class Rejected(ValueError):
    """A value that cannot be followed: the field, what is wrong, and what to do."""


def read(path: Path, kind: type[T], *, api_version: str, name: str) -> T:
    """The document of `apiVersion` and `kind` in the file. Raises UsageError that names the field."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--config: {path} cannot be read ({reason(error)})") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"--config: {path} is larger than {MOST_BYTES} bytes")
    try:
        document = yaml.safe_load(content)
        found = msgspec.convert(document, kind)
    except yaml.YAMLError as error:
        raise UsageError(f"--config: {path} is not YAML: {flat(error)}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"--config: {path}: {error}") from error
    if (document.get("apiVersion"), document.get("kind")) != (api_version, name):
        raise UsageError(f"--config: {path}: it has to be apiVersion {api_version}, kind {name}")
    return found


def seconds(text: str, field: str) -> float:
    """Of a duration such as `1m30s`. Raises Rejected."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise Rejected(f"{field}: {error}") from None


def only(field: str, value: Any, allowed: Any, why: str) -> None:
    """Raises Rejected for another value than the one that there is."""
    if value != allowed:
        raise Rejected(f"{field}: {why}; leave it out")
