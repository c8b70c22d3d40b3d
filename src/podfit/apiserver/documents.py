"""JSON and YAML from bytes, within bounds.

Whatever walks a document afterwards does so by recursion, some of it in C without a guard of its own, so a document is
measured before it is built: deep nesting would end the process, and a few YAML aliases can stand for gigabytes.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
import yaml

from podfit.core.errors import ApiError, bad_request

DEEPEST = 100  # levels; an object of the API needs twenty
_UNUSUAL = tuple((text[0], text) for text in (b" :", b"\t:", b"\r:", b"\n:", b"\\u"))
MOST_NODES = 200_000  # of a YAML document, after its aliases


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """The document, and its members that occur twice in one object, as problems. Raises 400."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't parse the body as JSON: {error}") from None
    if body.count(b"{") + body.count(b"[") > DEEPEST:
        check_depth(value)
    return value, _repeated(body, value)


def check_depth(value: Any) -> None:
    """Raises 400 for a document of more than DEEPEST levels."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise _too_deep()


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> ApiError:
    return bad_request(f"the document is nested too deeply: the limit is {DEEPEST} levels")


class _Members(dict[str, Any]):
    """An object that remembers which of its names came more than once."""

    repeated: tuple[str, ...] = ()


def _repeated(body: bytes, value: Any) -> list[str]:
    """msgspec takes the last of two members of the same name silently. Where no name came twice, nothing was lost."""
    return [] if _complete(body, value) else _named_twice(body)


def _complete(body: bytes, value: Any) -> bool:
    """Whether a document has as many members as its text; False as well where that is not so easily told.

    Members are counted by the end of their names, `":`. The same letters can be inside of a string, where they are as
    often in the text as in the document that is written again, unless the text writes letters by their numbers or has
    space before a colon.
    """
    if any(first in body and text in body for first, text in _UNUSUAL):
        return False
    return body.count(b'":') == msgspec.json.encode(value).count(b'":')


def _named_twice(body: bytes) -> list[str]:
    found = False

    def pairs(members: list[tuple[str, Any]]) -> _Members:
        nonlocal found
        made = _Members(members)
        if len(made) != len(members):
            names = [name for name, _ in members]
            made.repeated = tuple(name for name in made if names.count(name) > 1)
            found = True
        return made

    document = json.loads(body, object_pairs_hook=pairs)
    return [f'duplicate field "{path}"' for path in _repeated_paths(document, "")] if found else []


def _repeated_paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Members):
        start = f"{path}." if path else ""
        yield from (start + name for name in value.repeated)
        for name, inner in value.items():
            yield from _repeated_paths(inner, start + name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _repeated_paths(inner, f"{path}[{index}]")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # whichever is there
    """YAML as JSON has it: what looks like a time stays a string."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Any]]]] = {
        letter: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def parse_yaml(body: bytes) -> Any:
    """The document. Raises 400."""
    try:
        _measure(body)
        value = yaml.load(body, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    check_depth(value)
    return value


def _measure(body: bytes) -> None:
    """Count levels and nodes from the parser's events, which need no recursion; an alias counts as what it repeats."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    nodes = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise bad_request(
                    f"error converting YAML to JSON: anchor {event.anchor!r} is not set, or is set around it"
                )
            nodes += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            nodes += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_.append((event.anchor, nodes))
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = nodes - before + 1
        if len(open_) > DEEPEST:
            raise _too_deep()
        if nodes > MOST_NODES:
            raise bad_request(f"the document is too large: the limit is {MOST_NODES} values, aliases included")
