"""Evaluates a namespace's policy for one write of a pod, or of a workload with a pod template."""

from collections.abc import Mapping, Sequence

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.validation.deprecations import SECCOMP_CONTAINER, SECCOMP_POD
from podfit.apiserver.admission.pod_security_standards.findings import AnyContainer, Violation
from podfit.apiserver.admission.pod_security_standards.policy import PREFIX, LevelVersion, Policy

CHECKED_SUBRESOURCES = ("", "ephemeralcontainers")
"""Of those served; upstream ignores exec, attach, binding, eviction, log, portforward, proxy and status. It looks at a
resize, too, where nothing that a level is about can change."""
ENFORCED, AUDITED = PREFIX + "enforce-policy", PREFIX + "audit-violations"


class PolicyVerdict(msgspec.Struct, frozen=True):
    """`refused` is the text of the 403; `annotations` are those of the audit event."""

    refused: str = ""
    warning: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


def levels_of(policy: Policy, *, enforce: bool) -> tuple[LevelVersion, ...]:
    """What a pod has to be checked against, each once."""
    wanted = (policy.enforce, policy.audit, policy.warn)
    return tuple(dict.fromkeys(wanted if enforce else wanted[1:]))


def evaluate(policy: Policy, violations: Mapping[LevelVersion, Sequence[Violation]], *, enforce: bool) -> PolicyVerdict:
    """From what was found at each of `levels_of`. `enforce` is false of a template: its pods are refused when they are
    made. What is refused is not warned of.
    """
    annotations = {ENFORCED: str(policy.enforce)} if enforce else {}
    refused = _text("violates", policy.enforce, violations[policy.enforce]) if enforce else ""
    if audited := _text("would violate", policy.audit, violations[policy.audit]):
        annotations[AUDITED] = audited
    warning = "" if refused else _text("would violate", policy.warn, violations[policy.warn])
    return PolicyVerdict(refused, warning, annotations)


def _text(verb: str, wanted: LevelVersion, violations: Sequence[Violation]) -> str:
    return f'{verb} PodSecurity "{wanted}": {", ".join(map(str, violations))}' if violations else ""


def is_significant(new: Pod, old: Pod) -> bool:
    """Whether an update is checked: it changes an image, a seccomp annotation, or which containers there are."""
    if new.metadata.annotations.get(SECCOMP_POD) != old.metadata.annotations.get(SECCOMP_POD):
        return True
    pairs = ((new.spec.containers, old.spec.containers), (new.spec.init_containers, old.spec.init_containers))
    for mine, theirs in pairs:
        if len(mine) != len(theirs):
            return True
        for container, before in zip(mine, theirs, strict=True):
            if _differs(new, old, container, before):
                return True
    if not new.spec.ephemeral_containers:
        return False
    known = {container.name: container for container in old.spec.ephemeral_containers}
    return any(
        container.name not in known or _differs(new, old, container, known[container.name])
        for container in new.spec.ephemeral_containers
    )


def _differs(new: Pod, old: Pod, mine: AnyContainer, theirs: AnyContainer) -> bool:
    if mine.image != theirs.image:
        return True
    annotations, before = new.metadata.annotations, old.metadata.annotations
    if annotations == before:
        return False
    key = SECCOMP_CONTAINER + mine.name
    return annotations.get(key) != before.get(key)
