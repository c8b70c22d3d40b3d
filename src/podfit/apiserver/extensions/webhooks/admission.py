"""Admission webhooks in the chain: mutating ones first, then validating ones.

Mutating webhooks run one after another, by the name of their configuration and in its order; each sees what the one
before it made. Validating ones run at once, on the final object. What a webhook changed is looked at again, once, by
the built-in plugins and by those webhooks before it that ask for it (`reinvocationPolicy: IfNeeded`).
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec

from podfit.api.admission.v1.types import AdmissionResponse
from podfit.api.admissionregistration.v1.types import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.defaults import apply_defaults
from podfit.api.meta import codec
from podfit.api.meta.base import Object, ObjectT
from podfit.api.structural.conditions import verdicts
from podfit.apiserver.admission.chain import CONNECT, MOST_KEPT, BasePlugin, PluginScope
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.extensions.webhooks.client import WebhookClient
from podfit.apiserver.extensions.webhooks.review import (
    JSON_PATCH,
    CallFailed,
    answer_of,
    denial,
    failure,
    internal_error,
    of_namespace,
    review_of,
    values_of,
)
from podfit.apiserver.extensions.webhooks.rules import Target, WebhookLabels, has_rule, is_exempt, is_selected
from podfit.apiserver.registry.patch import jsonpatch
from podfit.apiserver.request.bodies import most_values, typed_object
from podfit.apiserver.request.documents import check_depth, check_size
from podfit.core.errors import ApiError, forbidden, not_found


class Matched(msgspec.Struct, frozen=True):
    """Whether conditions let a write come to a webhook; `error` where they came to no verdict and it must not pass."""

    called: bool
    error: str = ""


def matched(webhook: ValidatingWebhook, values: Mapping[str, Any]) -> Matched:
    """All conditions have to hold. One that does not outweighs those without a verdict, about which the webhook's
    failure policy decides; so it does where they cost too much. Raises TooLong.
    """
    found = verdicts([condition.expression for condition in webhook.match_conditions], values)
    if isinstance(found, str):
        return Matched(called=False, error="" if webhook.failure_policy == "Ignore" else found)
    errors = [verdict for verdict in found if isinstance(verdict, str)]
    if False in found or (errors and webhook.failure_policy == "Ignore"):
        return Matched(called=False)
    text = errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
    return Matched(called=False, error=text) if errors else Matched(called=True)


log = logging.getLogger(__name__)


class Webhooks(BasePlugin):
    """What both sorts share: whom to ask, and how to take an answer. `sort` is what metrics call it."""

    scope: ClassVar[PluginScope] = PluginScope(connections=True)
    sort: ClassVar[str]
    may_patch: ClassVar[bool]

    def __init__(self, context: Context, client: WebhookClient) -> None:
        super().__init__(context)
        self._client = client

    async def _selects(self, webhook: ValidatingWebhook, attributes: Attributes, obj: Object) -> bool:
        """Whether a webhook whose rules lead to this write is to be asked about it. Raises 403 for conditions that come
        to no verdict.
        """
        if not is_selected(webhook, await self._labels(attributes, obj)):
            return False
        if not webhook.match_conditions:
            return True
        found = await self.context.checks.run(partial(matched, webhook, values_of(webhook, attributes, obj)))
        if found.error:
            raise forbidden(attributes.info.resource, attributes.name, found.error, group=attributes.info.group)
        return found.called

    async def _labels(self, attributes: Attributes, obj: Object) -> WebhookLabels:
        sides = (attributes.old, None if attributes.operation in ("DELETE", CONNECT) else obj)  # options have no labels
        own = tuple(side.metadata.labels for side in sides if side is not None)
        if of_namespace(attributes):
            return WebhookLabels(own=own, namespace=obj.metadata.labels)
        if not attributes.namespace:
            return WebhookLabels(own=own)
        namespace = await self.context.find(Namespace, attributes.namespace)
        if namespace is None:
            raise not_found("namespaces", attributes.namespace)
        return WebhookLabels(own=own, namespace=namespace.metadata.labels)

    async def _ask(self, webhook: ValidatingWebhook, attributes: Attributes, obj: Object) -> AdmissionResponse | None:
        """The answer; None where there is none and the webhook may be done without. Raises what refuses the write."""
        began, clock = self.context.clock.monotonic(), self.context.clock
        code, rejected = HTTPStatus.OK.value, False
        try:
            return await self._answered(webhook, attributes, obj)
        except CallFailed as error:
            code, rejected = HTTPStatus.INTERNAL_SERVER_ERROR.value, webhook.failure_policy != "Ignore"
            if rejected:
                raise failure(webhook, error) from None
            log.warning("webhook is passed over webhook=%s reason=%s", webhook.name, error)
            return None
        except ApiError as error:
            code, rejected = error.code, True
            raise
        finally:
            self._client.metrics.called(
                webhook.name,
                self.sort,
                attributes.operation,
                code=code,
                rejected=rejected,
                seconds=clock.monotonic() - began,
            )

    async def _answered(self, webhook: ValidatingWebhook, attributes: Attributes, obj: Object) -> AdmissionResponse:
        """Raises CallFailed without an answer that counts, ApiError with one that refuses."""
        review = review_of(webhook, attributes, obj, uid=self.context.random.uuid())
        response = answer_of(await self._client.ask(webhook, review), review, may_patch=self.may_patch)
        if response.patch and response.patch_type not in (None, JSON_PATCH):
            raise CallFailed(f'unsupported patch type "{response.patch_type}"')
        attributes.reinvocations.warnings += response.warnings
        if not response.allowed:
            raise denial(webhook, response)
        return response


def _target(attributes: Attributes) -> Target:
    info = attributes.info
    return Target(
        operation=attributes.operation,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=attributes.subresource,
        namespaced=bool(attributes.namespace) and not of_namespace(attributes),
    )


class Registered:
    """The webhooks of configurations by their name, those of each as listed; a key for each, and itself."""

    def __init__(self, configurations: Iterable[Any]) -> None:
        self._all = [
            (f"{configuration.metadata.name}/{index}/{webhook.name}", webhook)
            for configuration in sorted(configurations, key=lambda candidate: str(candidate.metadata.name))
            for index, webhook in enumerate(configuration.webhooks)
        ]
        self._chosen = lru_cache(MOST_KEPT)(self._choose)

    def about(self, attributes: Attributes) -> Sequence[tuple[str, Any]]:
        """Those whose rules lead to this write."""
        if not self._all or is_exempt(attributes.info.group, attributes.info.resource):
            return ()
        return self._chosen(_target(attributes))

    def _choose(self, target: Target) -> Sequence[tuple[str, Any]]:
        return [(key, webhook) for key, webhook in self._all if has_rule(webhook, target)]


class MutatingWebhooks(Webhooks):
    sort, may_patch = "admit", True

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        registered = await self.context.derived(MutatingWebhookConfiguration, "", Registered)
        attributes.reinvocations.begin(obj)
        # Each is chosen in its turn: the one before it may have changed the labels that it selects by.
        for key, webhook in registered.about(attributes):
            if not attributes.reinvocations.passes_over(key) and await self._selects(webhook, attributes, obj):
                obj = await self._mutated(key, webhook, attributes, obj)
        attributes.reinvocations.end(obj)
        return obj

    async def _mutated(self, key: str, webhook: MutatingWebhook, attributes: Attributes, obj: ObjectT) -> ObjectT:
        response = await self._ask(webhook, attributes, obj)
        if response is None:
            return obj
        new = self._patched(webhook, attributes, obj, response.patch) if response.patch else obj
        again = webhook.reinvocation_policy == "IfNeeded"
        attributes.reinvocations.asked(key, changed=new != obj, again=again)
        return new

    def _patched(self, webhook: MutatingWebhook, attributes: Attributes, obj: ObjectT, patch: bytes) -> ObjectT:
        """The object with the webhook's JSON patch and its defaults. Raises 500 for a patch that does not fit."""
        if attributes.operation == "DELETE":
            text = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f'admission webhook "{webhook.name}" {text}')
        try:
            document = jsonpatch.apply(codec.to_dict(obj), msgspec.json.decode(patch))
            check_depth(document)
            check_size(document, most_values(type(obj)))
            new: ObjectT = typed_object(document, type(obj), version=attributes.info.version)
        except (ApiError, msgspec.DecodeError, RecursionError) as error:
            raise internal_error(error.message if isinstance(error, ApiError) else str(error)) from None
        return apply_defaults(new, self.context.gates)


class ValidatingWebhooks(Webhooks):
    sort, may_patch = "validating", False

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        registered = (await self.context.derived(ValidatingWebhookConfiguration, "", Registered)).about(attributes)
        if not registered:
            return
        selected = [webhook for _, webhook in registered if await self._selects(webhook, attributes, obj)]
        asked = (self._ask(webhook, attributes, obj) for webhook in selected)
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
