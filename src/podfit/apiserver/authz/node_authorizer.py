"""The node authorizer: which requests of a kubelet are allowed (decide.node_rights.requests).

What a node may read follows from the pods that are bound to it, so a kubelet that is taken over gives away only what
was on its node. For the rest it holds the rules of the role `system:node`.
"""

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import info_for
from podfit.apiserver.authz.default_roles import rules_of_default
from podfit.apiserver.authz.question import Question
from podfit.apiserver.authz.rbac import covers
from podfit.apiserver.context import Context
from podfit.apiserver.registry import stored
from podfit.decide.node_rights import requests
from podfit.decide.node_rights.references import readable_by_node, volume_secrets
from podfit.decide.node_rights.requests import Decision, Denied

MOST_NAMESPACES = 1024
LARGE = 16 * 1024  # bytes of a pod that is decoded in a turn of its own
NO_OPINION = Denied()
READABLE = ("secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts")


class _Seen(msgspec.Struct, frozen=True):
    """What counts of a pod: its node, and the names of what it makes readable there."""

    version: int
    node: str
    names: Mapping[str, frozenset[str]]


class NodeAuthorizer:
    """Where each pod is bound and what it refers to is remembered by its version, so that of many pods only those are
    decoded that were written since a node last asked. What is gone is forgotten with the next question in its
    namespace, and everything when there are too many of those."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen: dict[str, dict[str, _Seen]] = {}  # by namespace and key

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
        return None if any(covers(rule, question) for rule in rules_of_default("system:node")) else NO_OPINION

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
        pods = await self._mine(node, question.namespace)
        return any(question.name in pod.names[question.resource] for pod in pods)

    async def _mounts_with(self, node: str, question: Question) -> bool:
        """Whether a persistent volume that the node mounts needs the secret."""
        by_secret = await self._context.derived(PersistentVolume, "", _claims_by_secret)
        claims = by_secret.get((question.namespace, question.name), {})
        for namespace, names in claims.items():
            if await self._uses_one_of(node, namespace, names):
                return True
        return False

    async def _uses_one_of(self, node: str, namespace: str, claims: set[str]) -> bool:
        pods = await self._mine(node, namespace)
        return any(not claims.isdisjoint(pod.names["persistentvolumeclaims"]) for pod in pods)

    async def _mine(self, node: str, namespace: str) -> list[_Seen]:
        info = info_for(Pod)
        records = (await self._context.store.list(stored.prefix(info, namespace))).records
        known, seen = self._seen.get(namespace, {}), {}
        for record in records:
            pod = known.get(record.key)
            if pod is None or pod.version != record.mod_revision:
                if len(record.value) > LARGE:
                    await asyncio.sleep(0)
                pod = _seen(stored.decoded(info, record), record.mod_revision)
            seen[record.key] = pod
        if len(self._seen) >= MOST_NAMESPACES:
            self._seen.clear()
        self._seen[namespace] = seen
        return [pod for pod in seen.values() if pod.node == node]


def _seen(pod: Pod, version: int) -> _Seen:
    node = pod.spec.node_name
    names = {resource: frozenset(readable_by_node(pod, resource)) for resource in READABLE} if node else {}
    return _Seen(version, node, names)


def _claims_by_secret(volumes: Iterable[PersistentVolume]) -> dict[tuple[str, str], dict[str, set[str]]]:
    """By namespace and name of a secret: the claims, by namespace, whose volumes are mounted with it."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for volume in volumes:
        for secret in volume_secrets(volume):
            ref = volume.spec.claim_ref
            assert ref is not None
            found.setdefault(secret, {}).setdefault(ref.namespace, set()).add(ref.name)
    return found
