"""May they? RBAC from the stored roles and bindings, with the node authorizer in front of it for kubelets.

Rules are read from the store for each request: they are few, in memory, and never stale.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from podfit.api.core.pods import Pod, PodSpec
from podfit.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from podfit.apiserver.admission.node_restriction import node_name
from podfit.apiserver.containers import every_container
from podfit.apiserver.context import Context
from podfit.apiserver.target import Target
from podfit.core.errors import ApiError, forbidden
from podfit.net.wire import Identity, Request

MASTERS = "system:masters"
OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")


@dataclass(frozen=True, slots=True)
class Question:
    """One access to be judged; `path` is set for what is not a resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Authorizer:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def check(self, identity: Identity, target: Target | None, request: Request) -> None:
        """Raises 403 that says who may not do what where."""
        question = _question(target, request)
        if MASTERS in identity.groups or _open(question):
            return
        node = node_name(identity)
        if node and await self._node_may(node, question, request):
            return
        if await self._role_allows(identity, question):
            return
        raise _refusal(identity, question)

    async def _node_may(self, node: str, question: Question, request: Request) -> bool:
        """What a kubelet needs, no more: its node and lease, its pods, and what they refer to."""
        match question.group, question.resource:
            case "", "pods":
                return await self._own_pods(node, question, request)
            case "", "secrets" | "configmaps" | "serviceaccounts":
                return question.verb in ("get", "list", "watch", "create") and await self._referred(node, question)
            case "", "nodes":
                return question.verb in ("create", "list", "watch") or question.name == node
            case "coordination.k8s.io", "leases":
                mine = question.verb == "create" or question.name == node
                return mine and question.namespace == "kube-node-lease"
            case "", "events":
                return question.verb in ("create", "patch", "update")
        return False

    async def _own_pods(self, node: str, question: Question, request: Request) -> bool:
        if question.verb in ("list", "watch"):
            return f"spec.nodeName={node}" in request.param("fieldSelector").split(",")
        if question.verb == "create":
            return not question.subresource
        pod = await self._context.find(Pod, question.name, question.namespace)
        if pod is None:
            return True  # the answer will be 404, which tells the kubelet more than a 403
        writes = question.verb == "delete" or question.subresource == "status" or question.verb == "get"
        return pod.spec.node_name == node and writes

    async def _referred(self, node: str, question: Question) -> bool:
        """Whether a pod of the node uses that one object."""
        pods = await self._context.all(Pod, question.namespace)
        mine = (pod for pod in pods if pod.spec.node_name == node)
        if question.resource == "serviceaccounts":
            return question.subresource == "token" and any(
                pod.spec.service_account_name == question.name for pod in mine
            )
        return bool(question.name) and any(question.name in _references(pod.spec, question.resource) for pod in mine)

    async def _role_allows(self, identity: Identity, question: Question) -> bool:
        for binding in await self._context.all(ClusterRoleBinding):
            if _applies(binding.subjects, identity, "") and await self._allowed(binding.role_ref, "", question):
                return True
        if not question.namespace:
            return False
        for bound in await self._context.all(RoleBinding, question.namespace):
            applies = _applies(bound.subjects, identity, question.namespace)
            if applies and await self._allowed(bound.role_ref, question.namespace, question):
                return True
        return False

    async def _allowed(self, ref: RoleRef, namespace: str, question: Question) -> bool:
        rules: Iterable[PolicyRule] = ()
        if ref.kind == "ClusterRole":
            cluster_role = await self._context.find(ClusterRole, ref.name)
            rules = cluster_role.rules if cluster_role else ()
        elif namespace:
            role = await self._context.find(Role, ref.name, namespace)
            rules = role.rules if role else ()
        return any(covers(rule, question) for rule in rules)


def _question(target: Target | None, request: Request) -> Question:
    if target is None:
        return Question(request.method.lower(), path=request.path)
    if target.resource == "namespaces" and target.name and not target.namespace:
        target_namespace = target.name
    else:
        target_namespace = target.namespace
    return Question(target.verb, target.group, target.resource, target.subresource, target_namespace, target.name)


def _open(question: Question) -> bool:
    path = question.path
    return (
        bool(path)
        and question.verb in ("get", "head")
        and any(path == each or path.startswith(each + "/") for each in OPEN_PATHS)
    )


def covers(rule: PolicyRule, question: Question) -> bool:
    """Whether the rule allows it; `*` is everything, `*/scale` one subresource of everything."""
    if not _any(rule.verbs, question.verb):
        return False
    if question.path:
        return any(_path_matches(each, question.path) for each in rule.non_resource_urls)
    named = not rule.resource_names or question.name in rule.resource_names
    resources = (question.full, f"*/{question.subresource}" if question.subresource else "*")
    return named and _any(rule.api_groups, question.group) and _any(rule.resources, *resources)


def _any(listed: Iterable[str], *wanted: str) -> bool:
    return any(each == "*" or each in wanted for each in listed)


def _path_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _applies(subjects: Iterable[Subject], identity: Identity, namespace: str) -> bool:
    return any(_is(subject, identity, namespace) for subject in subjects)


def _is(subject: Subject, identity: Identity, namespace: str) -> bool:
    match subject.kind:
        case "User":
            return subject.name == identity.user
        case "Group":
            return subject.name in identity.groups
        case "ServiceAccount":
            return identity.user == f"system:serviceaccount:{subject.namespace or namespace}:{subject.name}"
    return False


def _references(spec: PodSpec, resource: str) -> set[str]:
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


def _refusal(identity: Identity, question: Question) -> ApiError:
    who = f'User "{identity.user}" cannot'
    if question.path:
        text = f'forbidden: {who} {question.verb} path "{question.path}"'
        return ApiError(403, "Forbidden", text)
    where = f' in the namespace "{question.namespace}"' if question.namespace else " at the cluster scope"
    text = f'{who} {question.verb} resource "{question.full}" in API group "{question.group}"{where}'
    return forbidden(question.resource, question.name, text, group=question.group)
