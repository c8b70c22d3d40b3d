"""The authorizer: RBAC from the stored roles and bindings, and the node authorizer before it for kubelets.

What RBAC has once said to a question holds until a role or a binding is written: the store counts those writes in the
moment in which a read would show them, so a verdict is never older than what it was made of. Where the store cannot
tell (etcd, which others write, too) every question is answered from what is read for it.
"""

from collections.abc import Hashable
from typing import TypeVar

import msgspec

from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podfit.api.registry import info_for
from podfit.apiserver.authz.node_authorizer import NO_OPINION, NodeAuthorizer
from podfit.apiserver.authz.nodes import node_of
from podfit.apiserver.authz.question import Question, question_of
from podfit.apiserver.authz.rbac import MASTERS, Grant, bound_to, covers, grant_of
from podfit.apiserver.context import Context
from podfit.apiserver.registry import stored
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, forbidden
from podfit.decide.node_rights.requests import unknown
from podfit.net.wire import Identity, Request

T = TypeVar("T")


class Authorization(msgspec.Struct, frozen=True):
    """`reason` says through which binding it is allowed, or what else there is to say against it."""

    allowed: bool
    reason: str = ""


YES = Authorization(True)
_DECISIVE = (ClusterRole, ClusterRoleBinding, Role, RoleBinding)
MOST_KEPT = 8192  # verdicts, and lists of grants


class _Kept(msgspec.Struct, frozen=True):
    """What was found while the writes were counted so. Replaced as a whole, so what is being found goes nowhere."""

    stamps: tuple[int | None, ...] = ()
    verdicts: dict[Hashable, Authorization] = {}
    grants: dict[Hashable, tuple[Grant, ...]] = {}


class Authorizer:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._nodes = NodeAuthorizer(context)
        self._prefixes = tuple(stored.prefix(info_for(kind)) for kind in _DECISIVE)
        self._kept = _Kept()

    async def check(self, identity: Identity, request_info: RequestInfo | None, request: Request) -> None:
        """Raises 403 that says who may not do what where."""
        await self.require(identity, question_of(request_info, request))

    async def require(self, identity: Identity, question: Question) -> None:
        """Raises 403 unless they may."""
        verdict = await self.judge(identity, question)
        if not verdict.allowed:
            raise refusal(identity, question, verdict.reason)

    async def judge(self, identity: Identity, question: Question) -> Authorization:
        if MASTERS in identity.groups:
            return YES
        denied, node = NO_OPINION, node_of(identity)
        if node is not None:
            objection = await self._nodes.objection(node, question) if node else unknown(identity.user)
            if objection is None:
                return YES
            denied = objection
        verdict = await self._by_roles(identity, question)
        if verdict.allowed or not denied.reason:
            return verdict
        return Authorization(False, "\n".join(filter(None, (denied.reason, verdict.reason))))

    async def _by_roles(self, identity: Identity, question: Question) -> Authorization:
        kept, key = self._holding(), (identity.user, identity.groups, question)
        known = kept.verdicts.get(key) if kept else None
        if known is None:
            known = _judged(await self._grants(identity, question.namespace, kept), question)
            if kept:
                _keep(kept.verdicts, key, known)
        return known

    async def _grants(self, identity: Identity, namespace: str, kept: _Kept | None) -> tuple[Grant, ...]:
        key = identity.user, identity.groups, namespace
        known = kept.grants.get(key) if kept else None
        if known is None:
            bound = await bound_to(self._context, identity, namespace)
            known = tuple([await grant_of(self._context, binding, subject) for binding, subject in bound])
            if kept and kept.stamps == self._stamps():  # nothing was written while it was read
                _keep(kept.grants, key, known)
        return known

    def _holding(self) -> _Kept | None:
        """What still holds of what was found; None where that cannot be told."""
        stamps = self._stamps()
        if None in stamps:
            return None
        if stamps != self._kept.stamps:
            self._kept = _Kept(stamps)
        return self._kept

    def _stamps(self) -> tuple[int | None, ...]:
        return tuple([self._context.store.stamp(prefix) for prefix in self._prefixes])


def _keep(where: dict[Hashable, T], key: Hashable, value: T) -> None:
    if len(where) >= MOST_KEPT:
        where.clear()
    where[key] = value


def _judged(grants: tuple[Grant, ...], question: Question) -> Authorization:
    for grant in grants:
        if any(covers(rule, question) for rule in grant.rules):
            return Authorization(True, f"RBAC: allowed by {grant}")
    problems = [grant.problem for grant in grants if grant.missing]
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return Authorization(False, f"RBAC: {listed}" if problems else "")


def refusal(identity: Identity, question: Question, reason: str = "") -> ApiError:
    """The 403 `pods "x" is forbidden: User "jane" cannot …`, and the reason where there is one."""
    who = f'User "{identity.user}" cannot'
    because = f": {reason}" if reason else ""
    if question.path:
        return ApiError(403, "Forbidden", f'forbidden: {who} {question.verb} path "{question.path}"{because}', {})
    where = f' in the namespace "{question.namespace}"' if question.namespace else " at the cluster scope"
    text = f'{who} {question.verb} resource "{question.full}" in API group "{question.group}"{where}{because}'
    return forbidden(question.resource, question.name, text, group=question.group)
