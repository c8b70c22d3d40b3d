"""What a kubelet may do, no more than it needs: its node and lease, its pods, and what they refer to.

Which secrets and config maps a node may read follows from the pods that are bound to it, so a kubelet that is taken
over gives away only what was on its node.
"""

from podfit.api.core.pods import Pod, PodSpec
from podfit.apiserver.containers import every_container
from podfit.apiserver.context import Context
from podfit.apiserver.question import Question
from podfit.net.wire import Request

NO_OPINION = "no opinion"
LEASES = "kube-node-lease"
_LISTS = ("list", "watch")


class NodeAuthorizer:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def objection(self, node: str, question: Question, request: Request) -> str:
        """Why the node may not; empty when it may, NO_OPINION when this is nothing for nodes."""
        match question.group, question.resource:
            case "", "pods":
                return await self._pods(node, question, request)
            case "", "secrets" | "configmaps":
                return await self._referred(node, question)
            case "", "serviceaccounts":
                return await self._token(node, question)
            case "", "nodes":
                mine = question.verb == "create" or question.verb in _LISTS or question.name == node
                return "" if mine else f"node '{node}' cannot read '{question.name}', only its own Node object"
            case "coordination.k8s.io", "leases":
                mine = question.verb == "create" or question.name == node
                return "" if mine and question.namespace == LEASES else NO_OPINION
            case "", "events":
                return "" if question.verb in ("create", "patch", "update") else NO_OPINION
        return NO_OPINION

    async def _pods(self, node: str, question: Question, request: Request) -> str:
        if question.verb in _LISTS:
            mine = f"spec.nodeName={node}" in request.param("fieldSelector").split(",")
            return "" if mine else "can only list/watch pods with spec.nodeName field selector"
        if question.verb == "create" and not question.subresource:
            return ""  # mirror pods; admission looks at the rest
        if not (question.verb in ("get", "delete") or question.subresource == "status"):
            return NO_OPINION
        pod = await self._context.find(Pod, question.name, question.namespace)
        # For a pod that is gone the answer is 404, which tells the kubelet more than a 403.
        return "" if pod is None or pod.spec.node_name == node else _unrelated(node)

    async def _referred(self, node: str, question: Question) -> str:
        if question.verb not in ("get", *_LISTS):
            return "can only read resources of this type"
        if not question.name:
            return "No Object name found"
        pods = await self._mine(node, question.namespace)
        found = any(question.name in references(pod.spec, question.resource) for pod in pods)
        return "" if found else _unrelated(node)

    async def _token(self, node: str, question: Question) -> str:
        if (question.verb, question.subresource) != ("create", "token"):
            return NO_OPINION
        pods = await self._mine(node, question.namespace)
        return "" if any(pod.spec.service_account_name == question.name for pod in pods) else _unrelated(node)

    async def _mine(self, node: str, namespace: str) -> list[Pod]:
        return [pod for pod in await self._context.all(Pod, namespace) if pod.spec.node_name == node]


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
