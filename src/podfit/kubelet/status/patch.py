"""The change from one pod status to another as a strategic merge patch.

Only what differs is sent, and conditions are told apart by type, so that a condition of somebody else that was written
in the meantime survives.
"""

from collections.abc import Sequence
from typing import Any

from podfit.api.core.v1.pods.types import PodStatus
from podfit.api.meta import codec
from podfit.api.meta.alike import written_otherwise

Document = dict[str, Any]

_KEYED = ("hostIPs", "podIPs", "resourceClaimStatuses")  # lists that a strategic patch would merge: replaced as a whole
_AMOUNTS = frozenset(("allocated_resources", "container_statuses", "init_container_statuses", "resources"))
_SERVER_OWNED = frozenset(("qos_class", "resize", "nominated_node_name"))


def status_patch(old: PodStatus, new: PodStatus) -> Document:
    """Empty when there is nothing to write."""
    if old == new:
        return {}
    before, after = (_part(status, other) for status, other in ((old, new), (new, old)))
    patch = _difference(before, after, skip=("conditions", *_KEYED))
    for name in _KEYED:
        if before.get(name) != after.get(name):
            patch[name] = [{"$patch": "replace"}, *after.get(name, [])]
    return patch | _conditions(before.get("conditions", ()), after.get("conditions", ()))


def _part(status: PodStatus, other: PodStatus) -> Document:
    """What the two do not share and is the kubelet's to say."""
    fields: dict[str, Any] = {}
    for name in status.__struct_fields__:
        value, against = getattr(status, name), getattr(other, name)
        if value is against or name in _SERVER_OWNED:
            continue
        if value != against or (name in _AMOUNTS and written_otherwise(value, against)):
            fields[name] = value
    part: Document = codec.plain(PodStatus(**fields))
    return part


def _conditions(before: Sequence[Document], after: Sequence[Document]) -> Document:
    known = {item["type"]: item for item in before}
    wanted = {item["type"] for item in after}
    changed = [item for item in after if known.get(item["type"]) != item]
    for item in changed:
        item.update(dict.fromkeys(name for name in known.get(item["type"], {}) if name not in item))
    removed = [{"type": kind, "$patch": "delete"} for kind in known if kind not in wanted]
    if not changed and not removed:
        return {}
    order = [{"type": item["type"]} for item in after]
    return {"$setElementOrder/conditions": order, "conditions": [*changed, *removed]}


def _difference(before: Document, after: Document, *, skip: tuple[str, ...] = ()) -> Document:
    """Maps are compared member by member; null takes a member away."""
    patch: Document = {}
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if name in skip or old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[name] = _difference(old, new)
        else:
            patch[name] = new
    return patch
