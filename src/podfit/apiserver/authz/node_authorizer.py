"""The node authorizer: which requests of a kubelet are allowed (decide.node_rights.requests).

What a node may read follows from the pods that are bound to it, so a kubelet that is taken over gives away only what
was on its node. For the rest it holds the rules of the role `system:node`.
"""

from collections.abc import Iterable

from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.authz.bound_pods import BoundPods
from podfit.apiserver.authz.default_roles import rules_of_default
from podfit.apiserver.authz.question import Question
from podfit.apiserver.authz.rbac import covers
from podfit.apiserver.context import Context
from podfit.core.bounded_cache import cached_within
from podfit.decide.node_rights import requests
from podfit.decide.node_rights.references import volume_secrets
from podfit.decide.node_rights.requests import Decision, Denied

NO_OPINION = Denied()
MOST_KEPT = 256 * 1024
"""Bytes of questions about resources whose answers are remembered: a node may ask about any."""


class NodeAuthorizer:
    """A question costs as much as there are pods on the node, not as in the cluster (`BoundPods`)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pods = BoundPods(context)

    async def objection(self, node: str, question: Question) -> Denied | None:
        """Why the node may not; None when it may."""
        if question.path:
            return self._by_role(question)
        answer = requests.judged(node, question)
        if isinstance(answer, Denied):
            return answer
        if answer is Decision.ALLOWED:
            return None
        if answer is Decision.BY_ROLE:
            return self._by_role(question)
        return None if await self._related(node, question) else requests.unrelated(node)

    def _by_role(self, question: Question) -> Denied | None:
        """The role's rules name no objects, so that the answer is the same for all names."""
        if question.path:
            allowed = _covered(question)
        else:
            allowed = _is_in_role(question.verb, question.group, question.resource, question.subresource)
        return None if allowed else NO_OPINION

    async def _related(self, node: str, question: Question) -> bool:
        match question.group, question.resource:
            case "", "pods":
                pod = await self._context.find(Pod, question.name, question.namespace)
                return pod is not None and pod.spec.node_name == node
            case "", "persistentvolumes":
                volume = await self._context.find(PersistentVolume, question.name)
                ref = volume.spec.claim_ref if volume else None
                return ref is not None and await self._uses_one_of(node, ref.namespace, {ref.name})
            case "", "secrets":
                return await self._refers(node, question) or await self._mounts_with(node, question)
            case "", "configmaps" | "serviceaccounts" | "persistentvolumeclaims":
                return await self._refers(node, question)
        return False  # of kinds that are not served

    async def _refers(self, node: str, question: Question) -> bool:
        pods = await self._pods.on(node, question.namespace)
        return any((question.resource, question.name) in pod.readable for pod in pods)

    async def _mounts_with(self, node: str, question: Question) -> bool:
        """Whether a persistent volume that the node mounts needs the secret."""
        by_secret = await self._context.derived(PersistentVolume, "", _claims_by_secret)
        claims = by_secret.get((question.namespace, question.name), {})
        for namespace, names in claims.items():
            if await self._uses_one_of(node, namespace, names):
                return True
        return False

    async def _uses_one_of(self, node: str, namespace: str, claims: set[str]) -> bool:
        pods = await self._pods.on(node, namespace)
        wanted = {("persistentvolumeclaims", claim) for claim in claims}
        return any(not wanted.isdisjoint(pod.readable) for pod in pods)


@cached_within(MOST_KEPT)
def _is_in_role(verb: str, group: str, resource: str, subresource: str) -> bool:
    return _covered(Question(verb, group, resource, subresource))


def _covered(question: Question) -> bool:
    return any(covers(rule, question) for rule in rules_of_default("system:node"))


def _claims_by_secret(volumes: Iterable[PersistentVolume]) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Claims by namespace and name of a secret: those, by namespace, whose volumes are mounted with it."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for volume in volumes:
        for secret in volume_secrets(volume):
            ref = volume.spec.claim_ref
            assert ref is not None
            found.setdefault(secret, {}).setdefault(ref.namespace, set()).add(ref.name)
    return found
