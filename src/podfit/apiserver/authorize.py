"""May they? RBAC from the stored roles and bindings, with the node authorizer in front of it for kubelets."""

from podfit.apiserver.admission.node_restriction import node_name
from podfit.apiserver.context import Context
from podfit.apiserver.node_authorizer import NO_OPINION, NodeAuthorizer
from podfit.apiserver.question import Question, question_of
from podfit.apiserver.rbac import MASTERS, covers, rules_of
from podfit.apiserver.target import Target
from podfit.core.errors import ApiError, forbidden
from podfit.net.wire import Identity, Request

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
        await self.require(identity, question, reason)

    async def require(self, identity: Identity, question: Question, reason: str = "") -> None:
        """Raises 403 unless the identity's roles allow it; `reason` is what else was said against it."""
        if MASTERS in identity.groups:
            return
        held = await rules_of(self._context, identity, question.namespace)
        if not any(covers(rule, question) for rule in held):
            raise _refusal(identity, question, reason)


def _open(question: Question) -> bool:
    path = question.path
    return (
        bool(path)
        and question.verb in ("get", "head")
        and any(path == each or path.startswith(each + "/") for each in OPEN_PATHS)
    )


def _refusal(identity: Identity, question: Question, reason: str) -> ApiError:
    who = f'User "{identity.user}" cannot'
    if question.path:
        return ApiError(403, "Forbidden", f'forbidden: {who} {question.verb} path "{question.path}"', {})
    where = f' in the namespace "{question.namespace}"' if question.namespace else " at the cluster scope"
    text = f'{who} {question.verb} resource "{question.full}" in API group "{question.group}"{where}'
    if reason not in ("", NO_OPINION):
        text += f": {reason}"
    return forbidden(question.resource, question.name, text, group=question.group)
