"""Label and field selectors of a request, matched against stored records.

A record is decoded only as far as the selector needs: labels alone come from a Struct that knows nothing else.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.selector_text import parse_fields, parse_labels
from podfit.api.structural.custom import is_custom
from podfit.apiserver.registry import stored
from podfit.core.errors import bad_request
from podfit.core.selectors import FieldSelector, Selector, SelectorError
from podfit.net.wire import Request
from podfit.store.protocol import About, Change, Record


class _Meta(msgspec.Struct):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Labelled(msgspec.Struct):
    metadata: _Meta


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Bound(msgspec.Struct):
    spec: _Spec = _Spec()


_decoder, _bound = msgspec.json.Decoder(_Labelled), msgspec.json.Decoder(_Bound)
NODE = "spec.nodeName"


class Selection(msgspec.Struct, frozen=True):
    """True when it selects at all. `name` and `terms` are what `fields` says: of the name, and how each value is read
    that is compared."""

    info: ResourceInfo
    labels: Selector = Selector()
    fields: FieldSelector = FieldSelector()
    comparisons: int = 0
    """How many of them one object can take, its decoding counted as some."""
    name: str | None = None
    terms: tuple[tuple[Callable[[Any], str], str, bool], ...] = ()

    @staticmethod
    def of(info: ResourceInfo, request: Request, name: str = "") -> "Selection":
        """Raises 400 for a selector that cannot be read, or a field that the kind cannot be selected by. `name` is
        that of the one object that the path asks for."""
        if not name and "labelSelector" not in request.query and "fieldSelector" not in request.query:
            return Selection(info)
        try:
            labels = parse_labels(request.param("labelSelector"))
            fields = parse_fields(request.param("fieldSelector"))
        except SelectorError as error:
            raise bad_request(str(error)) from None
        known = selectable_paths(info)
        for path, _, _ in fields.terms:
            if path not in known:
                raise bad_request(_unselectable(info, path))
        if not name:
            return _selection(info, labels, fields, 20 + _comparisons(labels) + len(fields.terms))
        if fields and fields.exact("metadata.name") != name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        return _selection(info, labels, fields or FieldSelector((("metadata.name", name, True),)))

    def __bool__(self) -> bool:
        return bool(self.terms) or bool(self.labels)

    @property
    def about(self) -> About | None:
        """A watch of one name, or a kubelet's of the pods on its node: each change is told to those of them only that
        it is about."""
        if self.name is not None:
            return About(_names, self.name)
        node = self.fields.exact(NODE) if (self.info.group, self.info.resource) == ("", "pods") else None
        return None if node is None else About(_nodes_by(self.info), node)

    def matches(self, record: Record) -> bool:
        if self.labels and not self.labels.matches(_decoder.decode(record.value).metadata.labels):
            return False
        if self.name is not None and _name(record) != self.name:  # without its being decoded, as nearly all
            return False
        return not self.terms or self._fields_match(record)

    def names_one(self, namespace: str) -> bool:
        """Whether no more than one object can match, its name and namespace being given."""
        return self.name is not None and (bool(namespace) or not self.info.namespaced)

    def _fields_match(self, record: Record) -> bool:
        obj = stored.decoded(self.info, record)
        return all((read(obj) == value) is equal for read, value, equal in self.terms)


def _selection(info: ResourceInfo, labels: Selector, fields: FieldSelector, comparisons: int = 0) -> Selection:
    terms = tuple((info.reader(path), value, equal) for path, value, equal in fields.terms)
    return Selection(info, labels, fields, comparisons, fields.exact("metadata.name"), terms)


def _name(record: Record) -> str:
    return record.key.rpartition("/")[2]


def _names(change: Change) -> tuple[str]:
    return (_name(change.record),)


@lru_cache(maxsize=1)
def _nodes_by(info: ResourceInfo) -> Callable[[Change], set[str]]:
    """The node of a pod, or nothing, before a change and after it."""

    def nodes(change: Change) -> set[str]:
        now, previous = _node(info, change.record), change.previous
        return {now} if previous is None else {now, _node(info, previous)}

    return nodes


def _node(info: ResourceInfo, record: Record) -> str:
    """Of what a watcher is told nearly always, the whole is asked for anyway. What others put into the store and cannot
    be read must not keep anybody from being told."""
    try:
        return str(stored.decoded(info, record).spec.node_name)
    except (msgspec.MsgspecError, ValueError):
        return _bound.decode(record.value).spec.node_name


def _comparisons(labels: Selector) -> int:
    return sum(1 + len(requirement.values) for requirement in labels.requirements)


def selectable_paths(info: ResourceInfo) -> set[str]:
    """A kind without fields of its own takes both of every kind's, whether its objects have a namespace or not."""
    own = bool(info.fields) or is_custom(info.type)
    namespace = () if own and not info.namespaced else ("metadata.namespace",)
    return {"metadata.name", *namespace, *info.fields}


def _unselectable(info: ResourceInfo, path: str) -> str:
    if info.fields or is_custom(info.type):
        return info.unselectable.format(path)
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
