"""Reads manifests named by `-f`; `-` is stdin. Every error is one line."""

import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import yaml
from cyclopts import Parameter

from podfit.answers.facts.target import Target
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.resize_request import manifest_of
from podfit.api.core.v1.pods.types import PodSpec

MOST = 8 << 20
"""Bytes. An object of the API has at most a few MiB, and a release renders to less than this."""
STDIN = Path("-")
Manifest: TypeAlias = Annotated[
    Path | None,
    Parameter(name=["--filename", "-f"], allow_leading_hyphen=True, help="Sizes of this manifest (- is stdin)."),
]


def documents_of(path: Path) -> list[Any]:
    """The documents of a YAML or JSON file. Raises RequestError."""
    name = display_name(path)
    text = _text(path, name)
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.MarkedYAMLError as error:
        raise RequestError(f"{name}: {_problem(error)}") from error
    except (yaml.YAMLError, ValueError) as error:  # a date that is none, characters that YAML does not know
        raise RequestError(f"{name}: not a YAML file: {_first_line(error)}") from error
    except RecursionError as error:
        raise RequestError(f"{name}: nested too deeply") from error
    if not documents:
        raise RequestError(f"{name}: the file is empty")
    _check_size(documents, name)
    return documents


def spec_in(path: Path, target: Target) -> PodSpec:
    """The pod spec of the target in a file. Raises RequestError."""
    return spec_among(documents_of(path), target, display_name(path))


def spec_among(documents: Sequence[Any], target: Target, name: str) -> PodSpec:
    try:
        return manifest_of(documents, target)
    except RequestError as error:
        raise RequestError(f"{name}: {error}") from error


def _check_size(documents: list[Any], name: str) -> None:
    """A few aliases of aliases are a document of any size."""
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in sizes:
            sizes[id(value)] = MOST  # for what contains itself
            sizes[id(value)] = 1 + sum(map(size, value.values() if isinstance(value, dict) else value))
        return sizes[id(value)]

    try:
        expanded = size(documents)
    except RecursionError as error:
        raise RequestError(f"{name}: nested too deeply") from error
    if expanded >= MOST:
        raise RequestError(f"{name}: its aliases expand to more than {MOST >> 20} million values")


def display_name(path: Path) -> str:
    return "stdin" if path == STDIN else str(path)


def _text(path: Path, name: str) -> str:
    try:
        if path == STDIN:
            data = _bounded(sys.stdin.buffer, name)
        else:
            if not stat.S_ISREG(path.stat().st_mode) and not path.is_fifo():
                raise RequestError(f"{name}: {'is a directory' if path.is_dir() else 'not a regular file'}")
            with path.open("rb") as file:
                data = _bounded(file, name)
    except OSError as error:
        raise RequestError(f"{name}: {error.strerror or error}") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise RequestError(f"{name}: not a text file (byte {error.start} is not UTF-8)") from error
    if "\0" in text:
        raise RequestError(f"{name}: not a text file")
    return text


def _bounded(file: BinaryIO, name: str) -> bytes:
    data = file.read(MOST + 1)
    if len(data) > MOST:
        raise RequestError(f"{name}: larger than {MOST >> 20} MiB")
    return data


def _problem(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return where + (error.problem or error.context or "not a YAML file")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
