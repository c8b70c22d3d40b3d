"""Validation of updates of scheduling fields while scheduling gates hold a pod back: they only get narrower."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.pods.affinity import Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm
from podfit.api.core.v1.pods.types import PodSpec
from podfit.core.fields import FieldError, invalid

_SELECTOR = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
_TERM = "only additions are allowed (no mutations or deletions)"


def validate_placement_update(new: PodSpec, old: PodSpec) -> list[FieldError]:
    errors = []
    if any(new.node_selector.get(key) != value for key, value in old.node_selector.items()):
        errors.append(invalid("spec.nodeSelector", new.node_selector or None, _SELECTOR))
    before, after = _terms(old.affinity), _terms(new.affinity)
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    if not before:
        return errors
    if len(before) != len(after):
        return [*errors, invalid(path, [_shown(term) for term in after] or None, _TERMS)]
    for index, (was, now) in enumerate(zip(before, after, strict=True)):
        if not _only_more(now, was):
            errors.append(invalid(f"{path}[{index}]", _shown(now), _TERM))
    return errors


def _terms(affinity: Affinity | None) -> tuple[NodeSelectorTerm, ...]:
    node = affinity.node_affinity if affinity else None
    selector = node.required_during_scheduling_ignored_during_execution if node else None
    return selector.node_selector_terms if selector else ()


def _only_more(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    if not old.match_expressions and not old.match_fields and (new.match_expressions or new.match_fields):
        return False  # an empty term selects nothing, a filled one would select something
    return all(
        now[: len(was)] == was
        for now, was in ((new.match_expressions, old.match_expressions), (new.match_fields, old.match_fields))
    )


def _shown(term: NodeSelectorTerm) -> dict[str, Any]:
    """A term under the names of the API server's own fields, as its message quotes it."""
    return {"MatchExpressions": _requirements(term.match_expressions), "MatchFields": _requirements(term.match_fields)}


def _requirements(requirements: tuple[NodeSelectorRequirement, ...]) -> list[dict[str, Any]] | None:
    shown = [
        {"Key": requirement.key, "Operator": requirement.operator, "Values": list(requirement.values) or None}
        for requirement in requirements
    ]
    return shown or None


def with_node_affinity_of(old: Affinity | None, new: Affinity | None) -> Affinity | None:
    """`new` with the node affinity of `old`."""
    was: NodeAffinity | None = old.node_affinity if old else None
    if (new.node_affinity if new else None) == was:
        return new
    changed = replace(new or Affinity(), node_affinity=was)
    return old if old is None and changed == Affinity() else changed
