"""The annotation of client-side `kubectl apply`, kept in step when kubectl goes over to applying on the server.

Only for the manager that kubectl calls itself: who applies under another name has nothing to do with the annotation.
"""

import msgspec

from podfit.api.meta.base import Document
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.registry.apply.compare import changed, fields_of
from podfit.apiserver.registry.apply.sets import Tree, without
from podfit.core import go_json

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_LONGEST = 256 * 1024


def own_fields(info: ResourceInfo, live: Document) -> Tree:
    """The fields that kubectl set from the client's side and that still have its values: to change them takes nothing
    from anyone else, whoever is recorded for them."""
    try:
        last = msgspec.json.decode(_annotations(live).get(ANNOTATION, ""))
    except msgspec.DecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != info.group_version:
        return {}
    return without(without(fields_of(last, info.type), changed(last, live, info.type)), changed(live, last, info.type))


def renewed(document: Document, applied: Document) -> Document:
    """The document with the annotation saying what was applied, if it had one."""
    annotations = _annotations(document)
    if ANNOTATION not in annotations:
        return document
    text = go_json.escaped(msgspec.json.encode(_without_annotation(applied), order="sorted")).decode() + "\n"
    kept = {name: value for name, value in annotations.items() if name != ANNOTATION}
    if len(text) <= _LONGEST:
        kept[ANNOTATION] = text
    return document | {"metadata": document["metadata"] | {"annotations": kept}}


def _without_annotation(applied: Document) -> Document:
    annotations = _annotations(applied)
    if ANNOTATION not in annotations:
        return applied
    kept = {name: value for name, value in annotations.items() if name != ANNOTATION}
    return applied | {"metadata": applied["metadata"] | {"annotations": kept}}


def _annotations(document: Document) -> Document:
    found = (document.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}
