"""NodeRestriction: a kubelet writes its own node, its own lease, and pods that are bound to it, and nothing else."""

from collections.abc import Sequence
from typing import Any

from podfit.api.authentication import BoundObjectReference
from podfit.api.certificates import CertificateSigningRequest
from podfit.api.coordination import Lease
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.api.validation.pods import MIRROR
from podfit.apiserver.admission.chain import Passive
from podfit.apiserver.authz.nodes import PREFIX, node_name
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden
from podfit.decide.certificates import NODE_CLIENT, NODE_SERVING
from podfit.net.requests import read

LEASES = "kube-node-lease"


class NodeRestriction(Passive):
    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        """Changes nothing; refuses before validation has a word, as upstream."""
        self._check(attributes, obj)
        return obj

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if attributes.operation == "DELETE":
            self._check(attributes, obj)

    def _check(self, attributes: Attributes, obj: Any) -> None:
        node = node_name(attributes.identity)
        refused = _refused(attributes, obj, node) if node else ""
        if refused:
            info = attributes.info
            raise forbidden(info.resource, attributes.name, refused, group=info.group)


def _refused(attributes: Attributes, obj: Any, node: str) -> str:
    """Why the node may not; empty when it may."""
    match obj:
        case Pod():
            return _pod(attributes, obj, node)
        case Node():
            if attributes.name != node:
                return f'node "{node}" is not allowed to modify node "{attributes.name}"'
            if attributes.operation == "UPDATE" and obj.spec.taints != attributes.old.spec.taints:
                return f'node "{node}" is not allowed to modify taints'
        case CertificateSigningRequest() if attributes.operation == "CREATE":
            return _request(obj, node)
        case Lease():
            if attributes.namespace != LEASES:
                return f'can only access leases in the "{LEASES}" system namespace'
            if attributes.name != node:
                return "can only access node lease with the same name as the requesting node"
    return ""


def _request(request: CertificateSigningRequest, node: str) -> str:
    if request.spec.signer_name not in (NODE_CLIENT, NODE_SERVING):
        return ""
    try:
        name = read(request.spec.request).common_name
    except ValueError as error:
        return f"unable to parse csr: {error}"
    return "" if name == PREFIX + node else f"can only create a node CSR with CN={PREFIX}{node}"


def _pod(attributes: Attributes, pod: Pod, node: str) -> str:
    bound = (attributes.old or pod).spec.node_name == node
    if attributes.operation == "CREATE":
        if MIRROR not in pod.metadata.annotations:
            return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
        return "" if bound else f'node "{node}" can only create pods with spec.nodeName set to itself'
    if attributes.operation == "DELETE":
        return "" if bound else f'node "{node}" can only delete pods with spec.nodeName set to itself'
    if not bound:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if pod.metadata.labels != attributes.old.metadata.labels:
        return f'node "{node}" cannot update labels through pod status'
    return ""


def token_refused(node: str, ref: BoundObjectReference, pod: Pod | None, audiences: Sequence[str]) -> str:
    """Why a node may not have a token that is bound so; empty when it may. `pod` is the pod of that name."""
    if pod is None or ref.api_version != "v1" or ref.kind != "Pod":
        return "node requested token not bound to a pod"
    if not ref.uid:
        return "node requested token with a pod binding without a uid"
    if pod.spec.node_name != node:
        return "node requested token bound to a pod scheduled on a different node"
    if len(audiences) > 1:
        return "node may only request 0 or 1 audiences"
    wanted = audiences[0] if audiences else ""
    return "" if wanted in _projected_audiences(pod) else f'audience "{wanted}" not found in pod spec volume'


def _projected_audiences(pod: Pod) -> set[str]:
    sources = (each for volume in pod.spec.volumes if volume.projected for each in volume.projected.sources)
    return {each.service_account_token.audience for each in sources if each.service_account_token}
