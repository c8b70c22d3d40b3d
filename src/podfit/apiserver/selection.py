"""Label and field selectors of a request, matched against stored records.

A record is decoded only as far as the selector needs: labels alone come from a Struct that knows nothing else.
"""


import msgspec

from podfit.api.custom import is_custom
from podfit.api.registry import ResourceInfo
from podfit.apiserver import stored
from podfit.core.errors import bad_request
from podfit.core.selectors import FieldSelector, Selector, SelectorError, parse_fields, parse_labels
from podfit.net.wire import Request
from podfit.store.protocol import Record


class _Meta(msgspec.Struct):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Labelled(msgspec.Struct):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Labelled)


class Selection(msgspec.Struct, frozen=True):
    """True when it selects at all."""

    info: ResourceInfo
    labels: Selector
    fields: FieldSelector

    @staticmethod
    def of(info: ResourceInfo, request: Request) -> "Selection":
        """Raises 400 for a selector that cannot be read, or a field that the kind cannot be selected by."""
        try:
            labels = parse_labels(request.param("labelSelector"))
            fields = parse_fields(request.param("fieldSelector"))
        except SelectorError as error:
            raise bad_request(str(error)) from None
        known = {"metadata.name", *(("metadata.namespace",) if info.namespaced else ()), *info.fields}
        for path, _, _ in fields.terms:
            if path not in known:
                raise bad_request(_unselectable(info, path))
        return Selection(info, labels, fields)

    def __bool__(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    def matches(self, record: Record) -> bool:
        if self.labels and not self.labels.matches(_decoder.decode(record.value).metadata.labels):
            return False
        if not self.fields:
            return True
        return self._named(record) and self._fields_match(record)

    def names_one(self, namespace: str) -> bool:
        """Whether no more than one object can match, its name and namespace being given."""
        return self.fields.exact("metadata.name") is not None and (bool(namespace) or not self.info.namespaced)

    def _named(self, record: Record) -> bool:
        """The name is part of the key, so most records fall out without being decoded."""
        wanted = self.fields.exact("metadata.name")
        return wanted is None or record.key.rpartition("/")[2] == wanted

    def _fields_match(self, record: Record) -> bool:
        return self.fields.matches(self.info.selectable(stored.decoded(self.info, record)))


def _unselectable(info: ResourceInfo, path: str) -> str:
    if info.fields or is_custom(info.type):
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
