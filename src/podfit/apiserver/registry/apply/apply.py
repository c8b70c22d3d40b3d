"""Server-side apply: what an object becomes when a manager says what it wants of it (R-003).

    live + applied ─▶ merged ─▶ without what the manager applied before, applies no more, and nobody else owns
        ─▶ what that changes of what others own is a conflict, unless forced: then it is theirs no more

Everything is read off the Structs; nothing here knows a kind.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.base import Document, Object
from podfit.api.meta.member import Member
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import ManagedFieldsEntry
from podfit.api.structural.custom import is_custom
from podfit.apiserver.registry.apply.check import objections
from podfit.apiserver.registry.apply.compare import compared, existing, fields_of
from podfit.apiserver.registry.apply.last_applied import KUBECTL, own_fields, renewed
from podfit.apiserver.registry.apply.managed import (
    APPLY,
    UPDATE,
    Entries,
    entry_of,
    everything,
    in_order,
    same_manager,
    tracked_part,
)
from podfit.apiserver.registry.apply.merge import merged, pruned
from podfit.apiserver.registry.apply.owned_fields import CONTAINERS, Shape, joined, parts
from podfit.apiserver.registry.apply.sets import Tree, common, count, paths, sorted_tree, union_of, without
from podfit.apiserver.request.canonical import canonical
from podfit.apiserver.request.decoder_messages import misfit
from podfit.core.errors import ApiError, bad_request

UNMANAGED = "before-first-apply"
"""Who owns what an object held that nobody had applied and whose managers are not known."""
MOST_CONFLICTS = 1000
"""Fields that a refusal lists."""
_IDENTITY: Tree = {"f:metadata": {"f:name": {}}}


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome: the document, and who owns what of it."""

    document: Document
    entries: Entries


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """What one manager applies through which subresource. `reset` are fields that it does not write."""

    document: Document
    manager: str
    subresource: str
    reset: Tree
    force: bool
    now: str
    warnings: tuple[str, ...] = ()
    refused: str = ""
    """Why a strict reader refuses the document; upstream says so only when nothing else is wrong."""

    def to(self, info: ResourceInfo, live: Document | None, entries: Entries) -> Applied:
        """Onto the live document, None for a new object. Raises 400 for what cannot be applied, 409 for conflicts."""
        _check(info, self.document)
        before = live or {}
        if live is not None and not entries:
            unmanaged = entry_of(info, UNMANAGED, UPDATE, "", time=self.now)
            entries = (replace(unmanaged, fields_v1=everything(info, live)),)
        mine = entry_of(info, self.manager, APPLY, self.subresource, time=None)
        last = next((entry for entry in entries if same_manager(entry, mine)), None)
        others = [entry for entry in entries if entry is not last]
        wanted = _without_reset(fields_of(self.document, info.type), self.reset)
        after = merged(before, self.document, info.type)
        if last is not None:
            owned = union_of([wanted, _IDENTITY, *(other.fields_v1 or {} for other in others)])
            after = pruned(after, last.fields_v1 or {}, owned, info.type)
        written, gone = compared(before, after, info.type)
        taken = _without_reset(written, self.reset)
        if not self.force:
            free = own_fields(info, before) if self.manager == KUBECTL else {}
            if conflicts := _conflicts(others, without(taken, free)):
                raise _refusal(conflicts)
        if self.refused:
            raise bad_request(self.refused)
        kept = list(_left(others, taken, after, info, gone=gone))
        if fields := tracked_part(wanted):
            time = self.now if before != after else last.time if last else None
            kept.append(replace(mine, fields_v1=sorted_tree(fields), time=time))
        document = after if is_custom(info.type) else _settled(after, info.type)  # a schema may allow nulls
        if self.manager == KUBECTL:
            document = renewed(document, self.document)
        return Applied(document=document, entries=in_order(kept))


def _check(info: ResourceInfo, document: Any) -> None:
    given = tuple(value if isinstance(value := document.get(name), str) else "" for name in ("apiVersion", "kind"))
    if given != (info.group_version, info.kind):
        group, _, version = str(given[0]).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={given[1]}")
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    if meta.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    found = list(objections(document, info.type))
    if not found:
        try:
            codec.convert(canonical(document, info.type), info.type)
        except ValueError as error:  # msgspec's own refusals are such, too
            found = [misfit(str(error), info.type, document)]
    if found:
        name = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"
        what = f"{name}; {info.group}/{info.version}, Kind={info.kind}"
        why = found[0] if len(found) == 1 else "errors:" + "".join(f"\n  {objection}" for objection in found)
        raise bad_request(f"failed to create typed patch object ({what}): {why}")


def _without_reset(tree: Tree, reset: Tree) -> Tree:
    """The set without the fields of `reset` and all that is below them."""
    kept: Tree = {}
    for name, inner in tree.items():
        if name not in reset:
            kept[name] = inner
        elif reset[name] and (left := _without_reset(inner, reset[name])):
            kept[name] = left
    return kept


def _conflicts(others: Iterable[ManagedFieldsEntry], taken: Tree) -> list[tuple[str, Tree]]:
    """Who is in the way, and of which fields."""
    ordered = sorted(others, key=lambda entry: (entry.manager, entry.operation, entry.subresource))
    found = ((_shown(entry), common(entry.fields_v1 or {}, taken)) for entry in ordered)
    return [(who, fields) for who, fields in found if fields]


def _shown(entry: ManagedFieldsEntry) -> str:
    place = f' with subresource "{entry.subresource}"' if entry.subresource else ""
    return f'"{entry.manager}"{place}' + (f" using {entry.api_version}" if entry.operation == UPDATE else "")


def _refusal(conflicts: list[tuple[str, Tree]]) -> ApiError:
    """409 that lists the conflicts, in upstream's words; of very many the first, and how many more there are."""
    total = sum(count(fields) for _, fields in conflicts)
    each_path = ((who, path) for who, fields in conflicts for path in paths(fields))
    shown = list(islice(each_path, MOST_CONFLICTS))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for who, path in shown
    ]
    if total == 1:
        who, path = shown[0]
        text = f"1 conflict: conflict with {who}: {path}"
    else:
        lines: list[str] = []
        for who, group in groupby(shown, key=lambda conflict: conflict[0]):
            lines += [f"conflicts with {who}:", *(f"- {path}" for _, path in group)]
        if total > len(shown):
            lines.append(f"and {total - len(shown)} more")
        text = f"{total} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def _left(
    others: Iterable[ManagedFieldsEntry], taken: Tree, after: Object, info: ResourceInfo, *, gone: bool
) -> Iterator[ManagedFieldsEntry]:
    """What the others still own; `gone` says whether anything went."""
    for entry in others:
        fields = without(entry.fields_v1 or {}, taken)
        if gone:
            fields = existing(fields, after, info.type)
        if fields:
            yield replace(entry, fields_v1=fields)


def _settled(value: object, shape: Shape) -> Any:
    """The document as it can be typed: a null is a member that is not there, and in a map of scalars their zero."""
    if isinstance(value, dict) and not any(part is None or isinstance(part, CONTAINERS) for part in value.values()):
        return value
    inside = parts(value, shape)
    if inside is None:
        return codec.without_nulls(value)
    zero = shape.zero if isinstance(shape, Member) else None
    kept = {
        name: _settled(part, inner) if isinstance(part, CONTAINERS) else zero if part is None else part
        for name, (part, inner) in inside.items()
    }
    return joined(value, {name: part for name, part in kept.items() if part is not None})
