"""Applies a request's patch to an object: JSON patch, merge patch, strategic merge patch."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.schema import unknown_fields
from podfit.api.structural.custom import is_custom
from podfit.apiserver.context import Context
from podfit.apiserver.registry.apply.managed import Entries
from podfit.apiserver.registry.patch import jsonpatch, mergepatch, strategic
from podfit.apiserver.registry.patch.decoding import decoded
from podfit.apiserver.registry.patch.struct_patch import Unusual, is_plain, patched
from podfit.apiserver.request import bodies
from podfit.apiserver.request.bodies import IGNORE, Strictness, forgetting, todays, typed_object
from podfit.apiserver.request.decoder_messages import misfit, other_kind
from podfit.apiserver.request.documents import check_depth, check_size
from podfit.apiserver.request.legacy_options import DRAFT_POLICIES
from podfit.apiserver.request.patch_messages import unfit
from podfit.apiserver.request.write_options import check_write_options
from podfit.core import go_print
from podfit.core.errors import ApiError
from podfit.core.fields import invalid, refusal
from podfit.net.wire import Request
from podfit.store.protocol import Record

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class PatchedObject(msgspec.Struct, frozen=True):
    """What a client makes of an object. `entries` are the managers of its fields where the request settles them."""

    obj: Any
    warnings: Sequence[str] = ()
    entries: Entries | None = None


Make = Callable[[Record], PatchedObject]
_SHOWN = 1000  # bytes of a patch that a refusal quotes


def patcher(
    context: Context,
    info: ResourceInfo,
    request: Request,
    shown: Callable[[Record], Any],
    *,
    typed: Callable[[Record], Any] | None = None,
) -> Make:
    """What the request's patch makes of the document that is `shown` of a record, as an object of the kind. `typed`
    gives that object as it was, where it is the stored one."""
    kind, custom = _kind_of_patch(request, info), is_custom(info.type)
    check_write_options(request)
    strictness = Strictness.of(request)
    changes, problems = _read(request, info, kind, strictness)

    def refuse(text: str) -> ApiError:
        sent = go_print.plain(changes) if kind == STRATEGIC_PATCH else request.body.decode(errors="replace")
        return refusal("", "", [invalid("patch", sent[:_SHOWN], text)])

    plain = typed is not None and kind != JSON_PATCH and is_plain(changes)

    def make(record: Record) -> PatchedObject:
        if plain and typed is not None and DRAFT_POLICIES not in context.legacy:
            try:
                obj = patched(typed(record), forgetting(changes), merge_lists=kind == STRATEGIC_PATCH)
                return PatchedObject(obj, strictness.check(problems, refuse))
            except (Unusual, msgspec.ValidationError, ValueError, RecursionError):
                pass  # what does not fit is named by its place in the whole document
        document = shown(record)
        outcome = _outcome(document, changes, kind, info)
        if other := _of_another_kind(outcome, info):
            raise refuse(other)
        try:
            obj = typed_object(todays(outcome, info.type, context.legacy), info.type, version=info.version)
        except ApiError as error:
            if custom:
                raise
            why = str(error.__cause__ or error.message)
            words = unfit(why, info.type, outcome) if kind == STRATEGIC_PATCH else misfit(why, info.type, outcome)
            raise refuse(words) from None
        # What is stored has no unknown fields, so after a merge only those of the patch have to be looked for.
        doubtful = kind == JSON_PATCH or unknown_fields(changes, info.type, directives=kind == STRATEGIC_PATCH)
        paths = unknown_fields(outcome, info.type, first=kind == STRATEGIC_PATCH) if doubtful else []
        unknown = (f'unknown field "{path}"' for path in paths)
        return PatchedObject(obj, strictness.check([*problems, *unknown], refuse))

    return make


def _read(request: Request, info: ResourceInfo, kind: str, strictness: Strictness) -> tuple[Any, list[str]]:
    """The patch, and what is odd about it. Raises 400 for what is no JSON, 413 for too many values."""
    changes, problems = decoded(request.body, prefix="" if kind == STRATEGIC_PATCH else "error decoding patch: ")
    if len(request.body) > 2 * (most := bodies.most_values(info.type)) and kind != JSON_PATCH:
        check_size(changes, most)
    if kind == JSON_PATCH and strictness.level != IGNORE:
        problems = [f"json patch {problem}" for problem in (*problems, *jsonpatch.odd_members(changes))]
    return changes, problems


def _kind_of_patch(request: Request, info: ResourceInfo) -> str:
    """Its media type. Raises 415 for one that there is not, or not for this kind."""
    kind = bodies.media_type(request)
    accepted = [known for known in PATCHES if known != STRATEGIC_PATCH or not is_custom(info.type)]
    if kind in accepted:
        return kind
    if kind not in PATCHES:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    raise bodies.unsupported(*accepted)


def _outcome(document: object, changes: Any, kind: str, info: ResourceInfo) -> Any:
    """What the patch makes of the document. What a strategic one calls the object does not matter, as upstream makes an
    object of the kind of whatever there is."""
    if kind == MERGE_PATCH:
        return mergepatch.apply(document, changes)
    if kind == STRATEGIC_PATCH:
        patched = strategic.apply(document, changes, info.type)
        names = {"apiVersion": info.group_version, "kind": info.kind}
        return patched | {name: own for name, own in names.items() if isinstance(patched.get(name), str)}
    patched = jsonpatch.apply(document, changes)
    check_depth(patched)  # it alone can put a copy of something inside of itself
    check_size(patched, bodies.most_values(info.type))
    return patched


def _of_another_kind(patched: object, info: ResourceInfo) -> str:
    """Why the outcome is not of the kind; custom resources say so in words of their own."""
    return other_kind(patched, info.type) if isinstance(patched, dict) and not is_custom(info.type) else ""
