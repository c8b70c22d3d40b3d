"""Label selectors of affinity terms and spread constraints, compiled for matching."""

from collections.abc import Iterable, Iterator

import msgspec

from podfit.api.core.v1.pods.affinity import PodAffinityTerm
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.selectors import holds, requirements
from podfit.core.selectors import Requirement
from podfit.decide.placement.view import NamespaceLabels


def same_keys(keys: Iterable[str], pod: Pod, operator: str = "In") -> Iterator[Requirement]:
    """The values that the pod itself has of these labels; one that it lacks asks for nothing."""
    labels = pod.metadata.labels
    return (Requirement(key, operator, (labels[key],)) for key in keys if key in labels)


class Term(msgspec.Struct, frozen=True):
    """One affinity term of `owner`, with its key of the node's labels; `matches` asks about another pod."""

    topology_key: str
    namespaces: frozenset[str]
    in_namespaces: tuple[Requirement, ...] | None
    labels: tuple[Requirement, ...] | None

    def matches(self, pod: Pod, namespaces: NamespaceLabels) -> bool:
        name = pod.metadata.namespace
        inside = name in self.namespaces or holds(self.in_namespaces, namespaces.get(name, {}))
        return inside and holds(self.labels, pod.metadata.labels)


def term(owner: Pod, given: PodAffinityTerm) -> Term:
    """A term that names no namespace speaks about its owner's."""
    named = frozenset(given.namespaces)
    if not named and given.namespace_selector is None:
        named = frozenset((owner.metadata.namespace,))
    labels = requirements(given.label_selector)
    if labels is not None:
        labels += (*same_keys(given.match_label_keys, owner), *same_keys(given.mismatch_label_keys, owner, "NotIn"))
    return Term(given.topology_key, named, requirements(given.namespace_selector), labels)
