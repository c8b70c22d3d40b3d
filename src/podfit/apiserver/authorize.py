"""May they? RBAC from the stored roles and bindings, with the node authorizer in front of it for kubelets.

Rules are read from the store for each request: they are few, in memory, and never stale.
"""

from collections.abc import Iterable

from podfit.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from podfit.apiserver.admission.node_restriction import node_name
from podfit.apiserver.context import Context
from podfit.apiserver.node_authorizer import NO_OPINION, NodeAuthorizer
from podfit.apiserver.question import Question, question_of
from podfit.apiserver.target import Target
from podfit.core.errors import ApiError, forbidden
from podfit.net.wire import Identity, Request

MASTERS = "system:masters"
OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")


class Authorizer:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._nodes = NodeAuthorizer(context)

    async def check(self, identity: Identity, target: Target | None, request: Request) -> None:
        """Raises 403 that says who may not do what where."""
        question = question_of(target, request)
        if MASTERS in identity.groups or _open(question):
            return
        node = node_name(identity)
        reason = await self._nodes.objection(node, question, request) if node else ""
        if node and not reason:
            return
        if not await self._role_allows(identity, question):
            raise _refusal(identity, question, reason)

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


def _refusal(identity: Identity, question: Question, reason: str) -> ApiError:
    who = f'User "{identity.user}" cannot'
    if question.path:
        return ApiError(403, "Forbidden", f'forbidden: {who} {question.verb} path "{question.path}"')
    where = f' in the namespace "{question.namespace}"' if question.namespace else " at the cluster scope"
    text = f'{who} {question.verb} resource "{question.full}" in API group "{question.group}"{where}'
    if reason not in ("", NO_OPINION):
        text += f": {reason}"
    return forbidden(question.resource, question.name, text, group=question.group)
