"""What a kubelet may do, no more than it needs: its node and lease, its pods, and what they refer to.

Which secrets, config maps and accounts a node may use follows from the pods that are bound to it, so a kubelet that is
taken over gives away only what was on its node. For the rest it holds the rules of the role `system:node`.
"""

from podfit.api.core.pods import Pod, PodSpec
from podfit.api.registry import info_for
from podfit.apiserver import stored
from podfit.apiserver.authz.default_roles import rules_of_default
from podfit.apiserver.authz.question import Question
from podfit.apiserver.authz.rbac import covers
from podfit.apiserver.containers import every_container
from podfit.apiserver.context import Context

NO_OPINION = "no opinion"
LEASES = "kube-node-lease"
MOST_NAMESPACES = 1024
_LISTS = ("list", "watch")


class NodeAuthorizer:
    """Where each pod is bound is remembered by its version, so that of many pods only those are decoded that were
    written since a node last asked, and the node's own. What is gone is forgotten with the next question in its
    namespace, and everything when there are too many of those."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._bound: dict[str, dict[str, tuple[int, str]]] = {}  # by namespace and key: version and node

    async def objection(self, node: str, question: Question) -> str:
        """Why the node may not; empty when it may, NO_OPINION when this is nothing for nodes."""
        match question.group, question.resource:
            case "", "pods" if question.verb in ("get", *_LISTS) and not question.subresource:
                return await self._pods(node, question)
            case "", "secrets" | "configmaps":
                return await self._referred(node, question)
            case "", "serviceaccounts" if question.subresource or question.verb != "get":
                return await self._token(node, question)
            case "", "serviceaccounts":
                return await self._account(node, question)
            case "", "nodes" if question.verb in ("get", *_LISTS) and not question.subresource:
                return self._node(node, question)
            case "coordination.k8s.io", "leases":
                return self._lease(node, question)
        rules = rules_of_default("system:node")
        return "" if any(covers(rule, question) for rule in rules) else NO_OPINION

    async def _pods(self, node: str, question: Question) -> str:
        if question.verb in _LISTS:
            return "" if question.of_node == node else "can only list/watch pods with spec.nodeName field selector"
        pod = await self._context.find(Pod, question.name, question.namespace)
        return "" if pod is not None and pod.spec.node_name == node else _unrelated(node)

    async def _referred(self, node: str, question: Question) -> str:
        if question.verb not in ("get", *_LISTS):
            return "can only read resources of this type"
        if not question.name:
            return "No Object name found"
        pods = await self._mine(node, question.namespace)
        found = any(question.name in references(pod.spec, question.resource) for pod in pods)
        return "" if found else _unrelated(node)

    async def _token(self, node: str, question: Question) -> str:
        if question.verb != "create" or not question.name:
            return "can only create tokens for individual service accounts"
        if question.subresource != "token":
            return "can only create token subresource of serviceaccount"
        return await self._account(node, question)

    async def _account(self, node: str, question: Question) -> str:
        pods = await self._mine(node, question.namespace)
        return "" if any(pod.spec.service_account_name == question.name for pod in pods) else _unrelated(node)

    def _node(self, node: str, question: Question) -> str:
        mine = question.name == node or (not question.name and question.verb in _LISTS)
        return "" if mine else f"node '{node}' cannot read '{question.name}', only its own Node object"

    def _lease(self, node: str, question: Question) -> str:
        if question.verb not in ("get", "create", "update", "patch", "delete"):
            return "can only get, create, update, patch, or delete a node lease"
        if question.namespace != LEASES:
            return f'can only access leases in the "{LEASES}" system namespace'
        if question.verb != "create" and question.name != node:
            return "can only access node lease with the same name as the requesting node"
        return ""

    async def _mine(self, node: str, namespace: str) -> list[Pod]:
        info = info_for(Pod)
        records = (await self._context.store.list(stored.prefix(info, namespace))).records
        known, bound = self._bound.pop(namespace, {}), {}
        for record in records:
            where = known.get(record.key)
            if where is None or where[0] != record.mod_revision:
                where = record.mod_revision, stored.decoded(info, record).spec.node_name
            bound[record.key] = where
        if len(self._bound) >= MOST_NAMESPACES:
            self._bound.clear()
        self._bound[namespace] = bound
        return [stored.decoded(info, record) for record in records if bound[record.key][1] == node]


def _unrelated(node: str) -> str:
    return f"no relationship found between node '{node}' and this object"


def references(spec: PodSpec, resource: str) -> set[str]:
    """The names of the secrets or config maps that a pod uses."""
    of_secret = resource == "secrets"
    found = {each.name for each in spec.image_pull_secrets} if of_secret else set()
    for volume in spec.volumes:
        if of_secret and volume.secret:
            found.add(volume.secret.secret_name)
        elif not of_secret and volume.config_map:
            found.add(volume.config_map.name)
        for each in volume.projected.sources if volume.projected else ():
            source = each.secret if of_secret else each.config_map
            found |= {source.name} if source else set()
    for container in every_container(spec):
        for origin in container.env_from:
            ref = origin.secret_ref if of_secret else origin.config_map_ref
            found |= {ref.name} if ref else set()
        for variable in container.env:
            value = variable.value_from
            key = (value.secret_key_ref if of_secret else value.config_map_key_ref) if value else None
            found |= {key.name} if key else set()
    return found
