"""Which webhooks and admission policies match `pods/resize`. A plan cannot call them, so it names them."""

from collections.abc import Iterable, Iterator

from podfit.answers.admission_reader import POLICIES, ForeignChecks
from podfit.answers.kinds import MUTATING, VALIDATING
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.extensions.webhooks.rules import Target, WebhookLabels, has_rule, is_selected
from podfit.decide.resize.checks import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

CHECKS = {MUTATING.info.kind: MUTATING_WEBHOOKS, VALIDATING.info.kind: VALIDATING_WEBHOOKS, POLICIES: POLICIES}
"""By kind, the name of the check that asks them."""
RESIZE = Target(operation="UPDATE", group="", version="v1", resource="pods", subresource="resize")


def may_refuse(checks: ForeignChecks, pods: Iterable[Pod]) -> Iterator[str]:
    """A line for each that may refuse a resize of one of the pods; selectors of namespaces are not looked at."""
    labels = [WebhookLabels(own=(pod.metadata.labels,)) for pod in pods]
    for kind, webhook in checks.webhooks:
        if has_rule(webhook, RESIZE) and any(is_selected(webhook, one) for one in labels):
            yield f"may still refuse: {CHECKS[kind]} {webhook.name}"
    if checks.unread and labels:
        unread = ", ".join(CHECKS[kind] for kind in checks.unread)
        yield f"may still refuse: {unread} (you may not read which there are)"
