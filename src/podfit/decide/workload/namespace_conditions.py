"""Conditions of a terminating namespace: what is left in it, and what failed."""

from collections.abc import Mapping, Sequence

import msgspec

from podfit.api.core.v1.namespaces.types import NamespaceCondition

_WELL = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class NamespaceContents(msgspec.Struct, frozen=True):
    """What a look into a namespace found."""

    objects: Mapping[str, int] = {}
    """How many there are, by `resource.group`; of the core group `resource.`, as upstream writes it."""
    finalizers: Mapping[str, int] = {}
    """How many objects wait for each."""
    silent: Sequence[str] = ()
    """Groups with version whose kinds are not known: who serves them does not answer."""
    failures: Sequence[str] = ()
    """Why something could not be asked to go."""


def conditions(left: NamespaceContents, old: Sequence[NamespaceCondition], now: str) -> tuple[NamespaceCondition, ...]:
    """All five, and any others there were. One whose status stays keeps its time."""
    ours = [_condition(name, left, old, now) for name in _WELL]
    return (*(condition for condition in old if condition.type not in _WELL), *ours)


def _condition(name: str, left: NamespaceContents, old: Sequence[NamespaceCondition], now: str) -> NamespaceCondition:
    status, (reason, message) = "False", _WELL[name]
    if (trouble := _trouble(name, left)) is not None:
        status, (reason, message) = "True", trouble
    before = next((condition for condition in old if condition.type == name), None)
    since = before.last_transition_time if before is not None and before.status == status else now
    return NamespaceCondition(type=name, status=status, reason=reason, message=message, last_transition_time=since)


def _trouble(name: str, left: NamespaceContents) -> tuple[str, str] | None:
    if name == "NamespaceDeletionDiscoveryFailure" and left.silent:
        versions = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in sorted(left.silent))
        text = f"unable to retrieve the complete list of server APIs: {versions}"
        return "DiscoveryFailed", f"Discovery failed for some groups, {len(left.silent)} failing: {text}"
    if name == "NamespaceDeletionContentFailure" and left.failures:
        text = f"{len(left.failures)} remaining: {', '.join(sorted(left.failures))}"
        return "ContentDeletionFailed", f"Failed to delete all resource types, {text}"
    if name == "NamespaceContentRemaining" and left.objects:
        return "SomeResourcesRemain", f"Some resources are remaining: {_listed(left.objects, 'has')}"
    if name == "NamespaceFinalizersRemaining" and left.finalizers:
        text = f"Some content in the namespace has finalizers remaining: {_listed(left.finalizers, 'in')}"
        return "SomeFinalizersRemain", text
    return None


def _listed(numbers: Mapping[str, int], between: str) -> str:
    return ", ".join(sorted(f"{name} {between} {number} resource instances" for name, number in numbers.items()))
