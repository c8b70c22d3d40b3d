"""Strategic merge patch: a merge patch that knows which lists are maps.

Lists whose field declares a merge key are joined item by item; lists of unique scalars are united; all others are
replaced. What is not there yet, or is of another shape, is taken as it stands, without its nulls and without what holds
a `$patch`. Directives steer it:

    $patch: replace | delete             of a map, or as an item of a list
    $retainKeys: [names]                 members of a union that stay
    $deleteFromPrimitiveList/NAME: [..]  scalars to take out
    $setElementOrder/NAME: [..]          the order that the client wants

What makes no sense is 400; upstream answers 500 to some of it.
"""

from typing import Any

from podfit.api.meta.base import Document
from podfit.api.meta.member import Kind, Member
from podfit.api.meta.schema import members
from podfit.apiserver.registry.patch.decoding import unmarshalled
from podfit.apiserver.registry.patch.order import check_order, key_of, keys_of, ordered, places_of
from podfit.core import go_print
from podfit.core.errors import ApiError, bad_request

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
DELETE_PREFIX, ORDER_PREFIX = "$deleteFromPrimitiveList", "$setElementOrder"
REPLACE, DELETE = "replace", "delete"
_ABSENT = object()
_NESTED = (dict, list)


def apply(document: Any, patch: Any, kind: Kind) -> Any:
    """The merged document. ApiError 400 for a patch that makes no sense; null is one that changes nothing."""
    if patch is None:
        return document
    if not isinstance(patch, dict):
        raise bad_request(unmarshalled(patch, "map[string]interface {}"))
    return _merge_map(document, patch, kind)


def _merge_map(document: Document, patch: Document, kind: Kind | None) -> Document:
    if DIRECTIVE in patch:
        return _directed(patch)
    merged = _retained(document, patch)
    known = members(kind) if kind else {}
    done = [_ordered_member(merged, patch, name, known) for name in patch if name.startswith(ORDER_PREFIX)]
    for name, value in patch.items():
        taking_out = False
        if name in done:
            continue
        if name.startswith("$"):
            if name == RETAIN or name.startswith(ORDER_PREFIX):
                continue
            taking_out = name.startswith(DELETE_PREFIX)
            if taking_out:
                name = _target(name, DELETE_PREFIX, "primitive list")
        if value is None:
            merged.pop(name, None)
        else:
            _merge_member(merged, name, value, known.get(name), taking_out=taking_out)
    return merged


def _directed(patch: Document) -> Document:
    """What `$patch` makes of a whole map."""
    match patch[DIRECTIVE]:
        case "replace":
            return {name: value for name, value in patch.items() if name != DIRECTIVE}
        case "delete":
            return {}
    raise _unknown_type(patch)


def _unknown_type(patch: Document) -> ApiError:
    return bad_request(f"unknown patch type: {go_print.plain(patch[DIRECTIVE])} in map: {go_print.plain(patch)}")


def _target(name: str, prefix: str, what: str) -> str:
    """The member that a directive is about."""
    found, slash, target = name.partition("/")
    if found != prefix or not slash:
        raise bad_request(f"invalid patch format of {what}")
    return target


def _retained(document: Document, patch: Document) -> Document:
    if RETAIN not in patch:
        return dict(document)
    listed = patch[RETAIN]
    kept = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else None
    given = (
        name
        for name, value in patch.items()
        if value is not None and name != RETAIN and not name.startswith((DELETE_PREFIX, ORDER_PREFIX))
    )
    if kept is None or any(name not in kept for name in given):
        raise bad_request("invalid patch format of retainKeys")
    return {name: value for name, value in document.items() if name in kept}


def _ordered_member(merged: Document, patch: Document, directive: str, known: dict[str, Member]) -> str:
    """Merges the list that `$setElementOrder` is about, in that order; answers its name."""
    order, name = patch[directive], _target(directive, ORDER_PREFIX, "setElementOrder list")
    current, given = merged.get(name, _ABSENT), patch.get(name, _ABSENT)
    for value in (order, current, given):
        if value is not _ABSENT and not isinstance(value, list):
            raise bad_request(f"expected a []interface {{}}, but received {go_print.plain(value)}")
    if name not in known:
        raise bad_request(f"unable to find api field for the json field {name!r}")
    member = known[name]
    merge_key = member.listing.merge_key
    if given is not _ABSENT:
        check_order(given, order, merge_key, DIRECTIVE)
    if current is _ABSENT and given is _ABSENT:
        return name
    if given is _ABSENT:
        result = current
    elif current is _ABSENT:
        result = taken(given)
    else:
        result = _merge_list(current, given, member)
    before = current if isinstance(current, list) else []
    merged[name] = ordered(result, order, before, merge_key)
    return name


def _merge_member(merged: Document, name: str, value: object, member: Member | None, *, taking_out: bool) -> None:
    current = merged.get(name, _ABSENT)
    if isinstance(value, dict) and isinstance(current, dict):
        replaced = member is not None and member.listing.replaced
        item = member.item if member and member.shape == "struct" else None
        merged[name] = value if replaced else _merge_map(current, value, item)
    elif isinstance(value, list) and isinstance(current, list):
        merged[name] = _without(current, value) if taking_out else _merge_list(current, value, member)
    elif isinstance(value, _NESTED):
        if not taking_out and not _is_directed(value):
            merged[name] = taken(value)
    elif not (taking_out and isinstance(current, _NESTED)):
        merged[name] = scalar(value)


def taken(value: object) -> Any:
    """A part of a patch where there was nothing to merge it with."""
    if isinstance(value, dict):
        return {name: taken(inner) for name, inner in value.items() if inner is not None and not _is_directed(inner)}
    if isinstance(value, list):
        return [taken(item) for item in value if not _is_directed(item)]
    return scalar(value)


def scalar(value: object) -> Any:
    """A number without a fraction is a whole one, as upstream's converter takes it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_directed(value: object) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _without(current: list[Any], values: list[Any]) -> list[Any]:
    _check_alike(current, values)
    if any(isinstance(value, dict) for value in values):
        return current
    gone = set(values)
    return [item for item in current if item not in gone]


def _merge_list(current: list[Any], patch: list[Any], member: Member | None) -> list[Any]:
    listing = member.listing if member else None
    if listing is None or listing.replaced or not (listing.merge_key or (listing.set_ and listing.patched)):
        return patch
    if not current and not patch:
        return current
    _check_alike(current, patch)
    if not listing.merge_key:
        if any(isinstance(item, dict) for item in patch):
            return patch  # which is of a wrong type, as its conversion will say
        return ordered([*dict.fromkeys([*current, *patch])], patch, current, "")
    assert member is not None
    if patch and not isinstance(patch[0], dict):  # and so are the others
        raise bad_request("list element types are not identical")
    return _merge_items(current, patch, listing.merge_key, member.item)


def _check_alike(current: list[Any], patch: list[Any]) -> None:
    """Raises 400 for lists of lists, and for items that are not of one shape."""
    shapes = {type(item) for item in (*current, *patch)}
    if shapes & {list, type(None)} or len(shapes) > 1:
        raise bad_request("list element types are not identical")


def _merge_items(current: list[Any], patch: list[Any], merge_key: str, kind: Kind | None) -> list[Any]:
    plain = [given for given in patch if DIRECTIVE not in given]
    gone, replaced = set(), False
    for directed in patch if len(plain) < len(patch) else ():
        if DIRECTIVE not in directed:
            continue
        match directed[DIRECTIVE]:
            case "delete":
                gone.add(key_of(directed, merge_key))
            case "replace":
                replaced = True
            case "merge":
                raise bad_request("merging lists cannot yet be specified in the patch")
            case _:
                raise _unknown_type(directed)
    if replaced:
        return plain
    merged = [item for item in current if key_of(item, merge_key) not in gone] if gone else list(current)
    live = list(merged)
    known, keys = keys_of(merged, merge_key), keys_of(plain, merge_key)
    places = places_of(known)
    for given, key in zip(plain, keys, strict=True):
        if key in places:
            merged[places[key]] = _merge_map(merged[places[key]], given, kind)
        else:
            places[key] = len(merged)
            merged.append(new_item(given))
    return merged if keys == known else ordered(merged, plain, live, merge_key)


def new_item(value: object) -> Any:
    """A new item of a list as it stands, directives in it included, which nothing was there to be merged by."""
    if isinstance(value, dict):
        named = {name: inner for name, inner in value.items() if inner is not None and name[:1] != "$"}
        return {name: new_item(inner) for name, inner in named.items()}
    return [new_item(item) for item in value] if isinstance(value, list) else scalar(value)
