"""NodeRestriction for Node objects: a kubelet writes only its own, and sets no labels that draw pods to it."""

from collections.abc import Iterable, Mapping

from podfit.api.core.v1.nodes.types import Node
from podfit.decide.node_rights.verdict import NotPermitted, Verdict

_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    )
)
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_PROTECTED_DOMAINS = ("kubernetes.io", "k8s.io")


def created(node: Node, name: str, who: str) -> Verdict:
    """`name` is the one in the request, empty when the server is to generate it."""
    if name != who:
        return not_its_own(who, name)
    if node.spec.config_source is not None:
        return NotPermitted(f'node "{who}" is not allowed to create pods with a non-nil configSource')
    if labels := _forbidden(node.metadata.labels):
        return NotPermitted(f'node "{who}" is not allowed to set the following labels: {", ".join(labels)}')
    return None


def updated(node: Node, old: Node, who: str) -> Verdict:
    if old.metadata.name != who:
        return not_its_own(who, old.metadata.name)
    if node.spec.config_source is not None and node.spec.config_source != old.spec.config_source:
        return NotPermitted(f'node "{who}" is not allowed to update configSource to a new non-nil configSource')
    if node.spec.taints != old.spec.taints:
        return NotPermitted(f'node "{who}" is not allowed to modify taints')
    if node.metadata.owner_references != old.metadata.owner_references:
        return NotPermitted(f'node "{who}" is not allowed to modify ownerReferences')
    if labels := _forbidden(changed(node.metadata.labels, old.metadata.labels)):
        return NotPermitted(f"is not allowed to modify labels: {', '.join(labels)}")
    return None


def deleted(name: str, who: str) -> Verdict:
    return None if name == who else not_its_own(who, name)


def not_its_own(who: str, name: str) -> NotPermitted:
    return NotPermitted(f'node "{who}" is not allowed to modify node "{name}"')


def address_of_another(who: str, address: str, owner: str) -> NotPermitted:
    return NotPermitted(f'node "{who}" is not allowed to use the address {address} of node "{owner}"')


def changed(new: Mapping[str, str], old: Mapping[str, str]) -> set[str]:
    """The keys that were added, removed or given another value."""
    return {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}


def _forbidden(labels: Iterable[str]) -> list[str]:
    return sorted(label for label in labels if not may_set(label))


def may_set(label: str) -> bool:
    """Labels outside of Kubernetes' domains are the kubelet's to choose, inside only the known and its own."""
    domain, slash, _ = label.partition("/")
    if not slash or not _within(domain, _PROTECTED_DOMAINS):
        return True
    return label in _LABELS or _within(domain, _KUBELET_DOMAINS)


def _within(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == known or domain.endswith(f".{known}") for known in domains)
