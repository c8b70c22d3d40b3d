"""NodeRestriction: a kubelet writes its own node, lease, CSINode and pods, and nothing else (decide.node_rights)."""

from typing import Any

from podfit.api.authentication.v1.types import BoundObjectReference, TokenRequest
from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.base import ObjectT
from podfit.api.storage.v1.types import CSIDriver, CSINode
from podfit.apiserver.admission.chain import BasePlugin
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.nodes import node_of
from podfit.apiserver.authz.question import Question
from podfit.apiserver.context import Attributes, Context
from podfit.core.errors import forbidden, not_found
from podfit.decide.node.addresses import is_served, taken
from podfit.decide.node_rights import nodes, objects, pods
from podfit.decide.node_rights.verdict import Missing, NotPermitted, Verdict
from podfit.decide.pod.volume_claims import claim_of
from podfit.net.certificate_signing import read

AUDIENCE_VERB = "request-serviceaccounts-token-audience"


class NodeRestriction(BasePlugin):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._authorizer = Authorizer(context)

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        """Changes nothing; refuses before validation, as upstream."""
        node = node_of(attributes.identity)
        if node is None:
            return obj
        if not node:
            verdict: Verdict = NotPermitted(f'could not determine node from user "{attributes.identity.user}"')
        else:
            verdict = await self._verdict(attributes, obj, node)
        if isinstance(verdict, Missing):
            raise not_found(verdict.kind, verdict.name)
        if isinstance(verdict, NotPermitted):
            name = obj.metadata.generate_name if attributes.generated else attributes.name
            raise forbidden(attributes.info.resource, name, verdict.text, group=attributes.info.group)
        return obj

    async def _verdict(self, attributes: Attributes, obj: Any, node: str) -> Verdict:
        name = "" if attributes.generated else attributes.name
        kind = attributes.info.type
        if kind is Pod:
            return await self._pod(attributes, obj, node)
        if kind is Node:
            return _node(attributes, obj, name, node) or await self._addresses(attributes, obj)
        if kind is PersistentVolumeClaim:
            if (refused := objects.claim(attributes.subresource)) is not None:
                return refused
            return objects.claim_status(obj, attributes.old, node)
        if kind is ServiceAccount and attributes.subresource == "token":
            return await self._token(attributes, obj, node)
        if kind is Lease:
            return objects.lease(attributes.namespace, name, node)
        if kind is CSINode:
            return objects.csi_node(name, node)
        if kind is CertificateSigningRequest and attributes.operation == "CREATE":
            return _request(obj, node)
        return None

    async def _addresses(self, attributes: Attributes, node: Node) -> Verdict:
        """No node takes an address at which another is reached: logs would be asked of it in the other's place."""
        old: Node | None = attributes.old
        if attributes.operation == "DELETE" or not is_served(node):
            return None
        if old is not None and old.status.addresses == node.status.addresses and is_served(old):
            return None
        clash = taken(node, await self.context.all(Node))
        return nodes.address_of_another(node.metadata.name, clash.address, clash.owner) if clash else None

    async def _pod(self, attributes: Attributes, obj: Any, node: str) -> Verdict:
        match attributes.subresource, attributes.operation:
            case "", "CREATE":
                return pods.created(obj, node, await self.context.find(Node, node))
            case "", "DELETE":
                return pods.deleted(obj, node)
            case "", operation:
                return pods.updated(operation, node)
            case "status", _:
                return pods.status_updated(obj, attributes.old, node)
            case "eviction", _:
                pod = await self.context.find(Pod, attributes.name, attributes.namespace)
                return pods.evicted(pod, attributes.name, node)
        return pods.other_subresource(attributes.subresource)

    async def _token(self, attributes: Attributes, asked: TokenRequest, node: str) -> Verdict:
        ref = asked.spec.bound_object_ref or BoundObjectReference()
        pod = await self.context.find(Pod, ref.name, attributes.namespace) if ref.name else None
        if (refused := objects.token(ref, pod, node)) is not None:
            return refused
        audience = objects.audience_of(asked.spec.audiences)
        if isinstance(audience, NotPermitted):
            return audience
        assert pod is not None
        if objects.projects_token_for(pod, audience) or await self._a_driver_wants(audience, pod):
            return None
        may = Question(AUDIENCE_VERB, resource=audience, namespace=attributes.namespace, name=attributes.name)
        if audience and (await self._authorizer.judge(attributes.identity, may)).allowed:
            return None
        return objects.audience_refused(audience, attributes.identity.user)

    async def _a_driver_wants(self, audience: str, pod: Pod) -> bool:
        """Whether the CSI driver of one of the pod's volumes gets tokens for the audience."""
        for volume in pod.spec.volumes:
            if name := await self._driver_of(volume, pod):
                driver = await self.context.find(CSIDriver, name)
                if driver is not None and audience in {request.audience for request in driver.spec.token_requests}:
                    return True
        return False

    async def _driver_of(self, volume: Volume, pod: Pod) -> str:
        """The CSI driver behind a volume, through its claim where it has one; empty when there is none."""
        if volume.csi:
            return volume.csi.driver
        name = claim_of(volume, pod)
        claim = await self.context.find(PersistentVolumeClaim, name, pod.metadata.namespace) if name else None
        bound_to = claim.spec.volume_name if claim else ""
        persistent = await self.context.find(PersistentVolume, bound_to) if bound_to else None
        return persistent.spec.csi.driver if persistent and persistent.spec.csi else ""


def _node(attributes: Attributes, obj: Any, name: str, node: str) -> Verdict:
    match attributes.operation:
        case "CREATE":
            return nodes.created(obj, name, node)
        case "UPDATE":
            return nodes.updated(obj, attributes.old, node)
    return nodes.deleted(name, node)


def _request(request: CertificateSigningRequest, node: str) -> Verdict:
    if request.spec.signer_name not in objects.SIGNERS:
        return None
    try:
        name = read(request.spec.request).common_name
    except ValueError as error:
        return NotPermitted(f"unable to parse csr: {error}")
    return objects.certificate_request(request.spec.signer_name, name, node)
