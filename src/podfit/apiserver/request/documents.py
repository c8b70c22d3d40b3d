"""Decodes JSON within bounds; YAML is in `yaml_documents`.

Whatever walks a document afterwards does so by recursion, some of it in C without a guard of its own, so a document is
measured before it is built: deep nesting would end the process.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import msgspec

from podfit.api.meta.base import Document
from podfit.core.errors import ApiError, bad_request

MOST_VALUES = 50_000
"""Objects, lists, strings and numbers in one document: work is done for each of them while everybody else waits. The
largest definitions of custom resources that are in use have half of that."""
MOST_CUSTOM = 30_000
"""In a custom resource, which is walked with its schema, twice where it has fields that the schema does not know."""
MOST_BUILT_IN = 15_000
"""In an object of a kind that podfit knows itself, whose values are checked one by one."""
MOST_OF_POD = 5_000
"""In a pod, of which scheduler, controllers and kubelet hold and copy what it says."""
_TO_COMMA = re.compile(rb'(?:[^",]++|"(?:[^"\\]++|\\.)*+"?)*+(?:,|\Z)', re.DOTALL)
"""Up to a comma that is not inside of a string, or to the end."""
LARGE = 4096
"""Bytes of YAML or protobuf that are read beside the event loop."""
_CONTAINERS = (dict, list)
_UNUSUAL = tuple((text[:1], text) for text in (b" :", b"\t:", b"\r:", b"\n:", b"\\u"))
DEEPEST = 100  # levels; an object of the API needs twenty


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """The document, and its members that occur twice in one object, as problems. Raises 400."""
    large = len(body) > MOST_VALUES and _marks(body) >= MOST_VALUES  # otherwise there cannot be as many
    if large and commas(body, MOST_VALUES + 1) > MOST_VALUES:
        raise too_many()  # before it is made, which takes three times as long
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't parse the body as JSON: {error}") from None
    if large:
        check_size(value)
    openings = body.count(b"{") + body.count(b"[")
    if openings > DEEPEST:
        check_depth(value)
    return value, _repeated(body, value)


def commas(text: bytes, most: int) -> int:
    """Parts of JSON between commas that are not inside of strings, counted up to `most`; no fewer values are in it."""
    return sum(1 for _ in islice(_TO_COMMA.finditer(text), most))


def is_json(body: bytes) -> bool:
    """Found without making the document."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def _marks(text: bytes) -> int:
    """What begins a value, or parts it from the next."""
    return text.count(b"{") + text.count(b"[") + text.count(b",")


def check_encoded(text: bytes, most: int) -> None:
    """Raises 413 for an encoded document of more values."""
    if len(text) > 2 * most and _marks(text) >= most:
        check_size(msgspec.json.decode(text), most)


def check_size(value: object, most: int = MOST_VALUES) -> None:
    """Raises 413 for a document of more values."""
    waiting, count = [value], 1
    while waiting:
        inner = _inside(waiting.pop())
        count += len(inner)
        if count > most:
            raise too_many(most)
        waiting += [
            value for value in inner if value and isinstance(value, _CONTAINERS)
        ]  # fields' managers: mostly empty


def too_many(most: int = MOST_VALUES) -> ApiError:
    limit = f"the limit is {most} values in one document"
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {limit}")


def check_depth(value: object) -> None:
    """Raises 400 for a document of more than DEEPEST levels."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise too_deep()


def _inside(value: object) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def too_deep() -> ApiError:
    return bad_request(f"the document is nested too deeply: the limit is {DEEPEST} levels")


class _Members(Document):
    """An object that remembers which of its names came more than once."""

    repeated: tuple[str, ...] = ()


def _repeated(body: bytes, value: object) -> list[str]:
    """msgspec takes the last of two members of the same name silently. Where no name came twice, nothing was lost."""
    return [] if _complete(body, value) else _named_twice(body)


def _complete(body: bytes, value: object) -> bool:
    """Whether a document has as many members as its text; False as well where that is not so easily told.

    Members are counted by the end of their names, `":`. The same letters can be inside of a string, where they are as
    often in the text as in the document that is written again, unless the text writes letters by their numbers or has
    space before a colon.
    """
    written = msgspec.json.encode(value)
    return written == body or (not is_unusual(body) and count_of_members(body) == count_of_members(written))


def is_unusual(body: bytes) -> bool:
    """Whether it writes letters by their numbers, or has space before a colon. One byte is looked for thirty times as
    quickly as two."""
    seen = [text for first, text in _UNUSUAL if first in body]
    return bool(seen) and any(text in body for text in seen)


def count_of_members(text: bytes) -> int:
    return text.count(b'":')


def _named_twice(body: bytes) -> list[str]:
    found = False

    def pairs(members: list[tuple[str, Any]]) -> _Members:
        nonlocal found
        made = _Members(members)
        if len(made) != len(members):
            times = Counter(name for name, _ in members)
            made.repeated = tuple(name for name in made if times[name] > 1)
            found = True
        return made

    document = json.loads(body, object_pairs_hook=pairs)
    return [f'duplicate field "{path}"' for path in _repeated_paths(document, "")] if found else []


def _repeated_paths(value: object, path: str) -> Iterator[str]:
    if isinstance(value, _Members):
        start = f"{path}." if path else ""
        yield from (start + name for name in value.repeated)
        for name, inner in value.items():
            yield from _repeated_paths(inner, start + name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _repeated_paths(inner, f"{path}[{index}]")
