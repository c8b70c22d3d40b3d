"""The text of a kubeconfig: changed where its entries change, and nowhere else.

A file that people keep has comments, an order and fields that podfit knows nothing of. So entries are cut out of the
lines and put into them. Where the lines do not allow it (JSON, a list in brackets, an anchor in what goes), the
parsed tree is changed and written anew, with every scalar as it stood; only comments are lost then. What comes out is
parsed again before it is used.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from podfit.client.kubeconfig import SECTIONS, Document, parsed

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9+/=.:_@-]*[A-Za-z0-9+/=]")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def block(value: Any) -> Iterator[str]:
    """Lines of YAML, in the one style that a file of podfit's own needs."""
    for key, child in value.items() if isinstance(value, dict) else ((None, child) for child in value):
        lead = "-" if key is None else f"{key}:"
        if not isinstance(child, dict | list) or not child:
            yield f"{lead} {_scalar(child)}"
        elif key is None:
            first, *rest = block(child)
            yield from (f"- {first}", *(f"  {line}" for line in rest))
        else:
            yield from (lead, *(line if isinstance(child, list) else f"  {line}" for line in block(child)))


def whole(document: Document) -> bytes:
    return "".join(f"{line}\n" for line in block(document)).encode()


def rewritten(content: bytes, before: Document, after: Document) -> bytes:
    """`content`, which says `before`, changed so that it says `after`: other entries in SECTIONS, another
    `current-context`.
    """
    if not before:
        return content + whole(after) if _blank(content) else whole(after)
    try:
        text = _Lines(content.decode()).changed(before, after).encode()
        if parsed(text) == after:
            return text
    except (_NotByLines, UnicodeDecodeError, yaml.YAMLError, ValueError):
        pass
    return _reserialized(content, before, after)


def _blank(content: bytes) -> bool:
    """Whether there are only comments."""
    return all(not line.strip() or line.lstrip().startswith(b"#") for line in content.splitlines())


def _scalar(value: Any) -> str:
    """Text that could be taken for something else is quoted, as in JSON, which is YAML too."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, default=str)


class _NotByLines(Exception):
    """The text is not laid out so that an entry has lines of its own."""


class _Lines:
    """The lines of a file. Changes are made from the last to the first, so that the marks of the parser stay right."""

    def __init__(self, text: str) -> None:
        self._lines = re.findall(r"[^\r\n\x85\u2028\u2029]*(?:\r\n|[\r\n\x85\u2028\u2029])|[^\r\n]+\Z", text)
        root = yaml.compose(text, Loader=_LOADER)
        if not isinstance(root, yaml.MappingNode) or root.flow_style:
            raise _NotByLines
        self._members = {key.value: (key, value) for key, value in root.value}
        self._end = len(self._lines)

    def changed(self, before: Document, after: Document) -> str:
        changes = [(key, before.get(key), after[key]) for key in after if before.get(key) != after[key]]
        there = [change for change in changes if change[0] in self._members]
        for key, old, new in sorted(there, key=lambda change: -self._members[change[0]][0].start_mark.line):
            if key in SECTIONS:
                self._entries(key, old or [], new)
            else:
                self._value(key, _scalar(new))
        for key, _, new in changes:
            if key not in self._members:
                self._put(len(self._lines), list(block({key: new})))
        return "".join(self._lines)

    def _entries(self, section: str, old: list[Document], new: list[Document]) -> None:
        key, value = self._members[section]
        if not old:
            self._value(section, "")
            self._put(key.start_mark.line + 1, list(block(new)))
            return
        if not isinstance(value, yaml.SequenceNode) or value.flow_style:
            raise _NotByLines
        successors = {entry.get("name"): entry for entry in new}
        names = {entry.get("name") for entry in old}
        dash = value.start_mark.column
        added = [entry for entry in new if entry.get("name") not in names]
        self._put(_end_line(value), list(block(added)), dash)
        for node, entry in reversed(list(zip(value.value, old, strict=True))):
            successor = successors.get(entry.get("name"))
            if successor == entry:
                continue
            start, end = node.start_mark.line, _end_line(node)
            if not re.fullmatch(r"\s*- +", self._lines[start][: node.start_mark.column]):
                raise _NotByLines
            self._lines[start:end] = []
            self._put(start, list(block([successor])) if successor else [], dash)
        if not new:
            line = self._lines[key.start_mark.line]
            colon = line.index(":", key.end_mark.column) + 1
            self._lines[key.start_mark.line] = f"{line[:colon]} []{line[colon:]}"

    def _value(self, key: str, written: str) -> None:
        """Put another scalar after a key, or none."""
        name, value = self._members[key]
        start, end = value.start_mark, value.end_mark
        if start.line != name.start_mark.line or end.line != start.line:
            raise _NotByLines
        line = self._lines[start.line]
        lead = line[: start.column].rstrip()
        self._lines[start.line] = f"{lead} {written}".rstrip() + line[end.column :]

    def _put(self, index: int, lines: list[str], indent: int = 0) -> None:
        if lines and index and not self._lines[index - 1].endswith(("\n", "\r")):
            self._lines[index - 1] += "\n"
        ending = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"
        self._lines[index:index] = [f"{' ' * indent}{line}{ending}" for line in lines]


def _end_line(node: yaml.Node) -> int:
    """The line after the last that belongs to a node; the parser's own mark of a block lies behind its comments."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end_line(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end_line(node.value[-1])
    return int(node.end_mark.line) + (1 if node.end_mark.column else 0)


def _reserialized(content: bytes, before: Document, after: Document) -> bytes:
    root = yaml.compose(content, Loader=_LOADER)
    assert isinstance(root, yaml.MappingNode)
    members = {key.value: (key, value) for key, value in root.value}
    for key in (key for key in after if before.get(key) != after[key]):
        name, value = _composed({key: after[key] if key not in SECTIONS else []}).value[0]
        if key in SECTIONS:
            there = members[key][1].value if before.get(key) else ()
            nodes = {id(entry): node for entry, node in zip(before.get(key) or (), there, strict=True)}
            value.value = [nodes.get(id(entry)) or _composed(entry) for entry in after[key]]
            value.flow_style = False
        members[key] = (name, value)
    root.value, root.flow_style = list(members.values()), False
    written = yaml.serialize(root, Dumper=yaml.SafeDumper, encoding="utf-8", allow_unicode=True)
    assert isinstance(written, bytes)
    return written


def _composed(value: Document) -> yaml.MappingNode:
    node = yaml.compose(whole(value), Loader=_LOADER)
    assert isinstance(node, yaml.MappingNode)
    return node
