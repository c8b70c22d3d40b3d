"""NodeRestriction for pods: a kubelet writes only those bound to its node."""

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import MIRROR, Pod, PodSpec
from podfit.api.meta.owners import identity_of, is_controlled_by
from podfit.api.meta.v1.types import OwnerReference
from podfit.decide.node_rights.references import referred_by, secrets_of
from podfit.decide.node_rights.verdict import Missing, NotPermitted, Verdict


def created(pod: Pod, node: str, registered: Node | None) -> Verdict:
    """Only a mirror pod that is bound to the node, is owned by it and refers to no other object. `registered` is the
    Node object of that name."""
    if not is_mirror(pod):
        return NotPermitted(f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods')
    if pod.spec.node_name != node:
        return NotPermitted(f'node "{node}" can only create pods with spec.nodeName set to itself')
    owners = pod.metadata.owner_references
    if len(owners) > 1:
        return NotPermitted(f'node "{node}" can only create pods with a single owner reference set to itself')
    if not owners:
        return NotPermitted(f'node "{node}" can only create pods with an owner reference set to itself')
    if (refused := _owner(owners[0], node)) is not None:
        return refused
    if registered is None:
        return Missing("node", node)
    expected, uid = owners[0].uid, registered.metadata.uid
    if not is_controlled_by(pod.metadata, identity_of(registered)):
        return NotPermitted(f"node {node} UID mismatch: expected {expected} got {uid}")
    referred = referred_by(pod.spec)
    return NotPermitted(f'node "{node}" can not create pods that reference {referred}') if referred else None


def _owner(owner: OwnerReference, node: str) -> NotPermitted | None:
    if (owner.api_version, owner.kind, owner.name) != ("v1", "Node", node):
        return NotPermitted(f'node "{node}" can only create pods with an owner reference set to itself')
    if not owner.controller:
        return NotPermitted(f'node "{node}" can only create pods with a controller owner reference set to itself')
    if owner.block_owner_deletion:
        return NotPermitted(f'node "{node}" must not set blockOwnerDeletion on an owner reference')
    return None


def mirror_refusal(spec: PodSpec) -> str:
    """What no mirror pod may have, whoever makes it: it shows what runs already, so it can be given nothing."""
    if spec.service_account_name:
        return "a mirror pod may not reference service accounts"
    if secrets_of(spec):
        return "a mirror pod may not reference secrets"
    projected = (source for volume in spec.volumes if volume.projected for source in volume.projected.sources)
    if any(source.service_account_token for source in projected):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def updated(operation: str, node: str) -> Verdict:
    """Refuses: a kubelet changes nothing of a pod itself."""
    return NotPermitted(f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods')


def deleted(pod: Pod, node: str) -> Verdict:
    if pod.spec.node_name != node:
        return NotPermitted(f'node "{node}" can only delete pods with spec.nodeName set to itself')
    return None


def status_updated(pod: Pod, old: Pod, node: str) -> Verdict:
    if old.spec.node_name != node:
        return NotPermitted(f'node "{node}" can only update pod status for pods with spec.nodeName set to itself')
    if pod.metadata.labels != old.metadata.labels:
        return NotPermitted(f'node "{node}" cannot update labels through pod status')
    if pod.status.resource_claim_statuses != old.status.resource_claim_statuses:
        return NotPermitted(f'node "{node}" cannot update resource claim statues')
    if pod.status.extended_resource_claim_status != old.status.extended_resource_claim_status:
        return NotPermitted(f'node "{node}" cannot update extended resource claim status')
    return None


def evicted(pod: Pod | None, name: str, node: str) -> Verdict:
    """`pod` is what is stored under the name in the URL."""
    if pod is None:
        return Missing("pod", name)
    if pod.spec.node_name != node:
        return NotPermitted(f"node {node} can only evict pods with spec.nodeName set to itself")
    return None


def other_subresource(subresource: str) -> Verdict:
    """Any other subresource than `status` and `eviction`."""
    return NotPermitted(f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed")
