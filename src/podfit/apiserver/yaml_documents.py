"""YAML from bytes, within the bounds of `documents`; loaded when somebody sends YAML.

A few aliases can stand for gigabytes, so a document is measured before it is built.
"""

from typing import Any, ClassVar

import yaml

from podfit.apiserver.documents import DEEPEST, check_depth, too_deep
from podfit.core.errors import bad_request

MOST_NODES = 200_000  # after the aliases


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
            raise too_deep()
        if nodes > MOST_NODES:
            raise bad_request(f"the document is too large: the limit is {MOST_NODES} values, aliases included")
