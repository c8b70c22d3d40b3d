"""NodeRestriction for a kubelet's other objects: lease, CSINode, claims' status, certificate requests, tokens."""

from collections.abc import Sequence

from msgspec.structs import replace

from podfit.api.authentication.v1.types import BoundObjectReference
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.certificates import NODE_CLIENT, NODE_SERVING
from podfit.decide.node_rights.verdict import Missing, NotPermitted, Verdict

LEASES = "kube-node-lease"
USER_PREFIX = "system:node:"
LEASE_OF_OTHERS = "can only access node lease with the same name as the requesting node"
LEASE_ELSEWHERE = f'can only access leases in the "{LEASES}" system namespace'
CSI_NODE_OF_OTHERS = "can only access CSINode with the same name as the requesting node"
SIGNERS = (NODE_CLIENT, NODE_SERVING)
"""The signers whose certificates make their holder a node."""


def lease(namespace: str, name: str, node: str) -> Verdict:
    if namespace != LEASES:
        return NotPermitted(LEASE_ELSEWHERE)
    return None if name == node else NotPermitted(LEASE_OF_OTHERS)


def csi_node(name: str, node: str) -> Verdict:
    return None if name == node else NotPermitted(CSI_NODE_OF_OTHERS)


def claim(subresource: str) -> Verdict:
    """Writes of a claim that are no update of its status."""
    return None if subresource == "status" else NotPermitted("may only update PVC status")


def claim_status(new: PersistentVolumeClaim, old: PersistentVolumeClaim, node: str) -> Verdict:
    """What a kubelet tells of a volume that it resizes: capacity, conditions, and how far it is."""
    status = replace(
        new.status,
        capacity=old.status.capacity,
        conditions=old.status.conditions,
        allocated_resources=old.status.allocated_resources,
        allocated_resource_statuses=old.status.allocated_resource_statuses,
    )
    meta = replace(
        new.metadata, managed_fields=old.metadata.managed_fields, resource_version=old.metadata.resource_version
    )
    if replace(new, metadata=meta, status=status) == old:
        return None
    return NotPermitted(
        f'node "{node}" is not allowed to update fields other than status.capacity and status.conditions'
    )


def certificate_request(signer: str, common_name: str, node: str) -> Verdict:
    wanted = USER_PREFIX + node
    if signer not in SIGNERS or common_name == wanted:
        return None
    return NotPermitted(f"can only create a node CSR with CN={wanted}")


def token(ref: BoundObjectReference | None, pod: Pod | None, node: str) -> Verdict:
    """A token bound to a pod of this node. `pod` is what is stored under the name in the reference."""
    if ref is None or (ref.api_version, ref.kind) != ("v1", "Pod") or not ref.name:
        return NotPermitted("node requested token not bound to a pod")
    if not ref.uid:
        return NotPermitted("node requested token with a pod binding without a uid")
    if pod is None:
        return Missing("pod", ref.name)
    if ref.uid != pod.metadata.uid:
        return NotPermitted(
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
    if pod.spec.node_name != node:
        return NotPermitted("node requested token bound to a pod scheduled on a different node")
    return None


def audience_of(audiences: Sequence[str] | None) -> str | NotPermitted:
    """The one audience that is asked for; empty when the server is to choose it."""
    if audiences is not None and len(audiences) > 1:
        return NotPermitted("node may only request 0 or 1 audiences")
    return audiences[0] if audiences else ""


def projects_token_for(pod: Pod, audience: str) -> bool:
    sources = (source for volume in pod.spec.volumes if volume.projected for source in volume.projected.sources)
    return any(
        source.service_account_token is not None and source.service_account_token.audience == audience
        for source in sources
    )


def audience_refused(audience: str, user: str) -> NotPermitted:
    return NotPermitted(
        f'audience "{audience}" not found in pod spec volume, '
        f"{user} is not authorized to request tokens for this audience"
    )
