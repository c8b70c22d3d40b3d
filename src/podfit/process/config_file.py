"""Reads the options of a component: flags count more than its configuration file, and that more than the defaults.

The file has upstream's field names. One that is not known is refused by name, and so is a value that would be something
else than it says.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from podfit.core.options import BadOption, Configured, declared, resolve
from podfit.net.files import flat
from podfit.process.errors import UsageError, reason

MOST_BYTES = 1 << 20

S = TypeVar("S", bound=Struct)


class Strict(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Fields in upstream's spelling; others are refused."""


class Rejected(BadOption):
    """A value that cannot be followed: the field, what is wrong, and what to do."""


def read(kind: type[S], given: Mapping[str, Any] | None = None, file: Path | None = None) -> S:
    """The options of the Struct. `given` are the values of flags, without those that were not given.

    Raises UsageError that names the flag, or the file and its field.
    """
    said: Mapping[tuple[str, ...], Any] = {}
    if file is not None and issubclass(kind, Configured):
        said = _said(file, kind)
        try:
            resolve(kind, {}, said)
        except BadOption as error:
            raise UsageError(f"--config: {file}: {error}") from None
    try:
        return resolve(kind, given or {}, said)
    except BadOption as error:
        raise UsageError(str(error)) from None


def _said(path: Path, kind: type[Configured]) -> dict[tuple[str, ...], Any]:
    """What the file says, by path. Raises UsageError that names the field."""
    document = _document(path)
    try:
        found = dict(_leaves(msgspec.convert(document, _shape(kind)), ()))
    except msgspec.ValidationError as error:
        raise UsageError(f"--config: {path}: {error}") from error
    wanted = kind.document
    if (found.pop(("apiVersion",), None), found.pop(("kind",), None)) != (wanted.api_version, wanted.kind):
        raise UsageError(f"--config: {path}: it has to be apiVersion {wanted.api_version}, kind {wanted.kind}")
    for field in wanted.fixed:
        if found.pop(tuple(field.path.split(".")), field.value) != field.value:
            raise UsageError(f"--config: {path}: {field.path}: {field.why}")
    return found


def _document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--config: {path} cannot be read ({reason(error)})") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"--config: {path} is larger than {MOST_BYTES} bytes")
    try:
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise UsageError(f"--config: {path} is not YAML: {flat(error)}") from error


class _Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """A level of a file; made for each component."""


@lru_cache(maxsize=16)
def _shape(kind: type[Configured]) -> type[_Shape]:
    fields: dict[tuple[str, ...], Any] = {("apiVersion",): str, ("kind",): str}
    fields |= {option.path: option.unit.file for option in declared(kind) if option.path}
    fields |= {tuple(field.path.split(".")): type(field.value) for field in kind.document.fixed}
    return _level(kind.document.kind, fields)


def _level(name: str, fields: Mapping[tuple[str, ...], Any]) -> type[_Shape]:
    below: dict[str, dict[tuple[str, ...], Any]] = {}
    for path, type_ in fields.items():
        below.setdefault(path[0], {})[path[1:]] = type_
    members = ((name, inner[()] if () in inner else _level(name, inner)) for name, inner in below.items())
    described = [(member, type_ | UnsetType, UNSET) for member, type_ in members]
    return cast("type[_Shape]", msgspec.defstruct(name, described, bases=(_Shape,), frozen=True))


def _leaves(level: _Shape, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in level.__struct_fields__:
        value = getattr(level, name)
        if isinstance(value, _Shape):
            yield from _leaves(value, (*at, name))
        elif value is not UNSET:
            yield (*at, name), value
