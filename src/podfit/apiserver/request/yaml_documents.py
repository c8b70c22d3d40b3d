"""YAML from bytes, within the bounds of `documents`; loaded when somebody sends YAML.

A few aliases can stand for gigabytes, so a document is measured before it is built.
"""

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec
import yaml
from msgspec.structs import replace

from podfit.api.meta.base import Document
from podfit.apiserver.request.documents import DEEPEST, MOST_VALUES, check_depth, check_size, too_deep, too_many
from podfit.core.errors import bad_request
from podfit.net.wire import Request

MOST_NODES = 2 * MOST_VALUES  # after the aliases; names of members count as well
Reader: TypeAlias = Callable[[Callable[[bytes], Any], bytes], Awaitable[Any]]
"""Decodes a body beside the event loop."""
_BOOLEANS = {"y": True, "n": False, "yes": True, "no": False, "on": True, "off": False, "true": True, "false": False}
_BOOLEAN = re.compile(r"y|Y|n|N|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[Tt]rue|TRUE|[Ff]alse|FALSE")
_WHOLE = re.compile(r"[-+]?(0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_OURS = tuple(f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # whichever is there
    """YAML as upstream's reader has it: what looks like a time stays a text, `y` and `n` are truths, `1:30` is a text
    and `1e3` a number."""

    bool_values: ClassVar[dict[str, bool]] = _BOOLEANS
    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Any]]]] = {
        letter: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp") and tag not in _OURS]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _resolve(name: str, letters: str, pattern: re.Pattern[str]) -> None:
    """Texts without quotes that begin with one of the letters and match are of this type."""
    for letter in letters:
        resolvers = _Loader.yaml_implicit_resolvers.setdefault(letter, [])
        resolvers.append((f"tag:yaml.org,2002:{name}", re.compile(rf"({pattern.pattern})\Z")))


_resolve("bool", "yYnNtTfFoO", _BOOLEAN)
_resolve("int", "-+0123456789", _WHOLE)
_resolve("float", "-+0123456789.", _FLOAT)


async def as_json(request: Request, read: Reader) -> Request:
    """The request with its YAML as JSON, read by a reader beside the loop. Raises 400 and 413, and 400 for keys that
    occur twice where the request is strict; otherwise nothing is said of them."""
    value, problems = await read(parse_yaml_strictly, request.body)
    if problems and request.param("fieldValidation") == "Strict":
        raise bad_request(f"strict decoding error: {problems[0]}")
    return replace(request, body=msgspec.json.encode(value))


def parse_yaml_strictly(body: bytes) -> tuple[Any, list[str]]:
    """The first document, of keys that occur twice the last, and what upstream's strict reader says of these: one text
    with a line for each. Raises 400."""
    try:
        _measure(body)
        loader = _Loader(body)
        node = loader.get_node() if loader.check_node() else None
        repeated: list[str] = []
        value = _Building(loader, repeated).value(node) if node is not None else None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    check_depth(value)
    check_size(value)
    return value, ["yaml: unmarshal errors:\n  " + "\n  ".join(repeated)] if repeated else []


class _Building:
    """Values of nodes, as JSON has them."""

    def __init__(self, loader: Any, repeated: list[str]) -> None:
        self._loader, self._repeated = loader, repeated

    def value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> Any:
        value = self._loader.construct_object(node)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"json: unsupported value: {value}")
            return int(value) if value.is_integer() else value
        if value is not None and not isinstance(value, str | int | bool):
            raise ValueError(f"line {node.start_mark.line + 1}: {node.tag} is nothing that JSON has")
        return value

    def _mapping(self, node: yaml.MappingNode) -> Document:
        own = {id(key) for key, _ in node.value}  # merged ones are no repetitions
        self._loader.flatten_mapping(node)
        built: Document = {}
        given: set[str] = set()
        for key_node, value_node in node.value:
            key, value = self._key(key_node), self.value(value_node)
            if id(key_node) in own:
                if key in given:
                    self._repeated.append(f'line {value_node.start_mark.line + 1}: key "{key}" already set in map')
                given.add(key)
            built[key] = value
        return built

    def _key(self, node: yaml.Node) -> str:
        key = self._scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if key is None:
            raise ValueError(f"line {node.start_mark.line + 1}: unsupported map key")
        return str(key).lower() if isinstance(key, bool) else str(key)


def _repeated(anchor: str | None, sizes: Mapping[str, int]) -> int:
    """How many nodes an alias stands for."""
    if anchor is None or anchor not in sizes:
        raise bad_request(f"error converting YAML to JSON: anchor {anchor!r} is not set, or is set around it")
    return sizes[anchor]


def _measure(body: bytes) -> None:  # noqa: C901  (a list of YAML's events)
    """Count levels and nodes from the parser's events, which need no recursion; an alias counts as what it repeats."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    nodes = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            nodes += _repeated(event.anchor, sizes)
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
        elif isinstance(event, yaml.DocumentEndEvent):
            return  # what follows is not read
        if len(open_) > DEEPEST:
            raise too_deep()
        if nodes > MOST_NODES:
            raise too_many()
