"""Reads `--config` files with upstream's field names.

A field that is not known is refused by name, and so is a value that would be something else than it says.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from podfit.net.files import flat
from podfit.process.errors import UsageError, reason

MOST_BYTES = 1 << 20
MOST_LETTERS = 100  # of a duration
_AMOUNTS = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

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
    parts = _AMOUNTS.findall(text[:MOST_LETTERS])
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise Rejected(f"{field}: {text!r} is no duration, such as 15s")
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def only(field: str, value: Any, allowed: Any, why: str) -> None:
    """Raises Rejected for another value than the one that there is."""
    if value != allowed:
        raise Rejected(f"{field}: {why}; leave it out")
