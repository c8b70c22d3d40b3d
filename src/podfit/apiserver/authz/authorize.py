"""May they? RBAC from the stored roles and bindings, with the node authorizer in front of it for kubelets."""

import msgspec

from podfit.apiserver.admission.node_restriction import node_name
from podfit.apiserver.authz.node_authorizer import NO_OPINION, NodeAuthorizer
from podfit.apiserver.authz.question import Question, question_of
from podfit.apiserver.authz.rbac import MASTERS, bound_to, covers, grant_of
from podfit.apiserver.context import Context
from podfit.apiserver.target import Target
from podfit.core.errors import ApiError, forbidden
from podfit.net.wire import Identity, Request


class Verdict(msgspec.Struct, frozen=True):
    """`reason` says through which binding it is allowed, or what else there is to say against it."""

    allowed: bool
    reason: str = ""


class Authorizer:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._nodes = NodeAuthorizer(context)

    async def check(self, identity: Identity, target: Target | None, request: Request) -> None:
        """Raises 403 that says who may not do what where."""
        await self.require(identity, question_of(target, request))

    async def require(self, identity: Identity, question: Question) -> None:
        """Raises 403 unless they may."""
        verdict = await self.judge(identity, question)
        if not verdict.allowed:
            raise refusal(identity, question, verdict.reason)

    async def judge(self, identity: Identity, question: Question) -> Verdict:
        if MASTERS in identity.groups:
            return Verdict(True)
        objection = NO_OPINION
        if node := node_name(identity):
            objection = await self._nodes.objection(node, question)
            if not objection:
                return Verdict(True)
        return await self._by_roles(identity, question, "" if objection == NO_OPINION else objection)

    async def _by_roles(self, identity: Identity, question: Question, objection: str) -> Verdict:
        problems = []
        for binding, subject in await bound_to(self._context, identity, question.namespace):
            grant = await grant_of(self._context, binding, subject)
            if any(covers(rule, question) for rule in grant.rules):
                return Verdict(True, f"RBAC: allowed by {grant}")
            problems += [grant.problem] if grant.missing else []
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        said = (objection, f"RBAC: {listed}" if problems else "")
        return Verdict(False, "\n".join(filter(None, said)))


def refusal(identity: Identity, question: Question, reason: str = "") -> ApiError:
    """The 403 `pods "x" is forbidden: User "jane" cannot …`, and the reason where there is one."""
    who = f'User "{identity.user}" cannot'
    because = f": {reason}" if reason else ""
    if question.path:
        return ApiError(403, "Forbidden", f'forbidden: {who} {question.verb} path "{question.path}"{because}', {})
    where = f' in the namespace "{question.namespace}"' if question.namespace else " at the cluster scope"
    text = f'{who} {question.verb} resource "{question.full}" in API group "{question.group}"{where}{because}'
    return forbidden(question.resource, question.name, text, group=question.group)
