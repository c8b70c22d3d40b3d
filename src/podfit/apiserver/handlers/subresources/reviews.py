"""Reviews: a creation that asks who somebody is or what they may do, and is answered instead of stored.

The same authorizer that guards every request answers, so `kubectl auth can-i` can never disagree with what happens.
"""

from typing import Any

from msgspec.structs import replace

from podfit.api.authentication.v1.types import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from podfit.api.authorization.v1.types import (
    FieldSelectorAttributes,
    NonResourceRule,
    ResourceAttributes,
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from podfit.api.authorization.v1.validation import AccessReview, validate_access_review
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import PolicyRule
from podfit.apiserver.authn.authenticate import TokenReader
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.nodes import node_name
from podfit.apiserver.authz.question import Question, selected_fields
from podfit.apiserver.authz.rbac import rules_of
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import object_response
from podfit.apiserver.registry.apply.managed import manager_of, tracked
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.representations import wanted_representation
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import bad_request
from podfit.core.fields import refusal
from podfit.core.times import format_time
from podfit.net.wire import Identity, Request, Response


class Reviews:
    def __init__(self, context: Context, authorizer: Authorizer, tokens: TokenReader) -> None:
        self._context = context
        self._authorizer = authorizer
        self._tokens = tokens

    async def answer(self, request_info: RequestInfo, request: Request, identity: Identity) -> Response:
        """The question with its answer. Raises 400 and 422 for one that cannot be answered."""
        assert request_info.info is not None
        wanted_representation(request, request_info, tables=False)
        asked, warnings = read_object(request, request_info.info)
        asked = replace(asked, metadata=_placed(asked.metadata, request_info), status=type(asked.status)())
        return object_response(
            await self._answered(asked, request_info, request, identity), status=201, warnings=warnings
        )

    async def _answered(self, asked: Any, request_info: RequestInfo, request: Request, identity: Identity) -> Any:
        now = format_time(self._context.clock.now())
        match asked:
            case SelfSubjectReview():
                status = SelfSubjectReviewStatus(user_info=user_info(identity))
                return SelfSubjectReview(metadata=ObjectMeta(creation_timestamp=now), status=status)
            case SelfSubjectRulesReview():
                return SelfSubjectRulesReview(status=await self._rules(asked.spec.namespace, identity))
            case TokenReview():
                answer: Any = await self._token(asked)
            case _:
                answer = await self._access(asked, request_info, identity)
        assert request_info.info is not None
        noted = tracked(request_info.info, asked, None, manager=manager_of(request), subresource="", now=now)
        return replace(noted, status=answer)

    async def _access(
        self, asked: AccessReview, request_info: RequestInfo, identity: Identity
    ) -> SubjectAccessReviewStatus:
        if errors := validate_access_review(asked):
            raise refusal("", "", errors, group=request_info.group)
        if not isinstance(asked, SelfSubjectAccessReview):
            identity = Identity(asked.spec.user, asked.spec.groups, asked.spec.uid, asked.spec.extra)
        verdict = await self._authorizer.judge(identity, _question(asked.spec))
        return SubjectAccessReviewStatus(allowed=verdict.allowed, reason=verdict.reason)

    async def _token(self, asked: TokenReview) -> TokenReviewStatus:
        if not asked.spec.token:
            raise bad_request("token is required for TokenReview in authentication")
        found = await self._tokens.check(asked.spec.token, asked.spec.audiences)
        if found.identity is None:
            problems = ["invalid bearer token", *filter(None, (found.problem,))]
            return TokenReviewStatus(error=problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return TokenReviewStatus(authenticated=True, user=user_info(found.identity), audiences=found.audiences)

    async def _rules(self, namespace: str, identity: Identity) -> SubjectRulesReviewStatus:
        if not namespace:
            raise bad_request("no namespace on request")
        held: list[PolicyRule] = await rules_of(self._context, identity, namespace)
        by_node = "node authorizer does not support user rule resolution" if node_name(identity) else ""
        return SubjectRulesReviewStatus(
            resource_rules=tuple(
                ResourceRule(
                    verbs=policy_rule.verbs,
                    api_groups=policy_rule.api_groups,
                    resources=policy_rule.resources,
                    resource_names=policy_rule.resource_names,
                )
                for policy_rule in held
                if policy_rule.resources
            ),
            non_resource_rules=tuple(
                NonResourceRule(verbs=policy_rule.verbs, non_resource_urls=policy_rule.non_resource_urls)
                for policy_rule in held
                if policy_rule.non_resource_urls
            ),
            evaluation_error=by_node,
        )


def user_info(identity: Identity) -> UserInfo:
    return UserInfo(username=identity.user, uid=identity.uid, groups=identity.groups, extra=dict(identity.extra))


def _placed(meta: ObjectMeta, request_info: RequestInfo) -> ObjectMeta:
    """The metadata in the namespace of the URL, which those of the whole cluster do not have, and without what only
    the server says."""
    if meta.namespace and request_info.namespace and meta.namespace != request_info.namespace:
        raise bad_request(
            f"the namespace of the provided object does not match the namespace sent on the request "
            f"({meta.namespace} != {request_info.namespace})"
        )
    return replace(
        meta,
        namespace=request_info.namespace,
        uid="",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        self_link="",
        managed_fields=(),
    )


def _question(spec: SelfSubjectAccessReviewSpec) -> Question:
    of_path, of = spec.non_resource_attributes, spec.resource_attributes or ResourceAttributes()
    if of_path is not None:
        return Question(of_path.verb, path=of_path.path)
    selected = _selected(of.field_selector) if of.field_selector else {}
    return Question(
        of.verb, of.group, of.resource, of.subresource, of.namespace, of.name, of_node=selected.get("spec.nodeName", "")
    )


def _selected(selector: FieldSelectorAttributes) -> dict[str, str]:
    """The fields that have to have one value."""
    if selector.raw_selector:
        return selected_fields(selector.raw_selector)
    single = (
        requirement
        for requirement in selector.requirements
        if requirement.operator == "In" and len(requirement.values) == 1
    )
    return {requirement.key: requirement.values[0] for requirement in single}
