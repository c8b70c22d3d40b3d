"""PodSecurity: pods that a namespace's labels forbid are refused, warned of, or named in the audit log.

It runs after every plugin and webhook that changes objects. Templates are warned of and audited only.
"""

import asyncio
from typing import Any

import msgspec

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.owners import controller_of
from podfit.api.meta.v1.types import OwnerReference
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.admission.pod_security_standards import existing
from podfit.apiserver.admission.pod_security_standards.evaluate import (
    CHECKED_SUBRESOURCES,
    evaluate,
    is_significant,
    levels_of,
)
from podfit.apiserver.admission.pod_security_standards.findings import Violation
from podfit.apiserver.admission.pod_security_standards.policy import PREFIX, PRIVILEGED, LevelVersion, policy_of
from podfit.apiserver.admission.pod_security_standards.registry import checks_of
from podfit.apiserver.context import Attributes
from podfit.apiserver.registry import stored
from podfit.apiserver.request.audit_annotations import annotate
from podfit.core.errors import forbidden, not_found
from podfit.core.fields import refusal
from podfit.decide.workload.templates import MAKE_PODS, template_of

PAGE = 50
"""Pods read at once when a namespace's labels change; between two pages others have their turn."""


STRETCH = 0.02
"""Seconds until others have their turn, whatever was done by then."""
LARGE = 1000
"""Containers and volumes of a pod between whose checks others have their turn."""


_PRIVILEGED_ANNOTATIONS = evaluate(PRIVILEGED, {PRIVILEGED.enforce: ()}, enforce=True).annotations


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    owner_references: tuple[OwnerReference, ...] = ()


class _OwnedPod(msgspec.Struct, frozen=True):
    """As much of a pod as says in which order to look at it."""

    metadata: _Meta = _Meta()


class PodSecurity(BasePlugin):
    scope = PluginScope(
        operations=("CREATE", "UPDATE"), kinds=(Pod, Namespace, *MAKE_PODS), subresources=CHECKED_SUBRESOURCES
    )

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        kind = attributes.info.type
        if kind is Pod:
            if attributes.old is None or is_significant(obj, attributes.old):
                await self._check(attributes, obj, enforce=True)
        elif attributes.subresource:
            return
        elif kind is Namespace:
            await self._check_namespace(attributes, obj)
        elif (placed := template_of(obj)) is not None:
            await self._check(attributes, placed.template, enforce=False)

    async def _check(self, attributes: Attributes, pod: Pod | PodTemplateSpec, *, enforce: bool) -> None:
        namespace = attributes.reinvocations.namespace or await self.context.find(Namespace, attributes.namespace)
        if namespace is None:
            raise not_found("namespaces", attributes.namespace)
        policy, errors = policy_of(namespace.metadata.labels)
        if policy is PRIVILEGED:  # nothing to look for
            if enforce:
                annotate(_PRIVILEGED_ANNOTATIONS)
            return
        found = {wanted: await _found(wanted, pod) for wanted in levels_of(policy, enforce=enforce)}
        verdict = evaluate(policy, found, enforce=enforce)
        annotate(verdict.annotations)
        if errors:
            annotate({f"{PREFIX}error": f"Failed to parse policy: {'; '.join(map(str, errors))}"})
        if verdict.refused:
            raise forbidden(attributes.info.resource, attributes.name, verdict.refused, group=attributes.info.group)
        if verdict.warning:
            attributes.reinvocations.warnings.append(verdict.warning)

    async def _check_namespace(self, attributes: Attributes, namespace: Namespace) -> None:
        """Raises 422 for labels that are bad, unless they were so before."""
        old = attributes.old
        if old is not None and old.metadata.labels == namespace.metadata.labels:
            return
        policy, errors = policy_of(namespace.metadata.labels)
        before, known = (PRIVILEGED, []) if old is None else policy_of(old.metadata.labels)
        if errors and errors != known:
            raise refusal("Namespace", namespace.metadata.name, errors)
        if old is not None and existing.has_to_look(policy, before):
            attributes.reinvocations.warnings += await self._existing(namespace.metadata.name, policy.enforce)

    async def _existing(self, namespace: str, wanted: LevelVersion) -> list[str]:
        """Warnings about the pods that are there; what takes longer than a second is left out, and said."""
        turn = self.context.clock.monotonic()
        deadline = turn + existing.SECONDS
        info, tally = info_for(Pod), existing.Tally()
        pods, total = await self._pod_owners(namespace, deadline)
        for name in existing.in_turn(pods)[: existing.MOST_PODS]:
            record = await self.context.store.get(stored.key(info, namespace, name))
            if record is None:
                continue
            pod = codec.decode(stored.unended(info, record), Pod)
            tally.add(name, await _found(wanted, pod))
            now = self.context.clock.monotonic()
            if now >= deadline:
                break
            if tally.checked % PAGE == 0 or now - turn > STRETCH:
                await asyncio.sleep(0)
                turn = self.context.clock.monotonic()
        return tally.warnings(namespace, wanted, total=total)

    async def _pod_owners(self, namespace: str, deadline: float) -> tuple[list[tuple[str, str]], int]:
        """Each pod's name and its controller's uid, as many as are read until the deadline; and how many there are."""
        prefix, after = stored.prefix(info_for(Pod), namespace), ""
        found: list[tuple[str, str]] = []
        while True:
            page = await self.context.store.list(prefix, after=after, limit=PAGE)
            for record in page.records:
                meta = msgspec.json.decode(record.value, type=_OwnedPod).metadata
                controller = controller_of(meta)
                found.append((meta.name, controller.uid if controller is not None else ""))
            if not page.remaining or self.context.clock.monotonic() >= deadline:
                return found, len(found) + page.remaining
            after = page.records[-1].key
            await asyncio.sleep(0)


async def _found(wanted: LevelVersion, pod: Pod | PodTemplateSpec) -> list[Violation]:
    """What the pod does that the level forbids."""
    spec, found = pod.spec, []
    large = len(spec.containers) + len(spec.init_containers) + len(spec.volumes) > LARGE
    for check in checks_of(wanted):
        if violation := check(pod.metadata, spec):
            found.append(violation)
        if large:
            await asyncio.sleep(0)
    return found
