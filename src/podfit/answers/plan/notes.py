"""Notes of a plan: quotas that it touches, warnings, what could not be read, and what a plan cannot ask.

Webhooks and admission policies that match `pods/resize` are named: a plan cannot call them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from podfit.answers.autoscaling.notes import autoscaler_notes
from podfit.answers.facts.admission import POLICIES, ForeignChecks
from podfit.answers.facts.kinds import MUTATING, VALIDATING
from podfit.answers.facts.pod_state import troubles
from podfit.answers.facts.readable import readable_amount
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.plan.resize_request import ResizeRequest, apply_to_template, can_undo, staying
from podfit.answers.plan.result import DEFERRED, PodPlan
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.owners import controller_of
from podfit.apiserver.extensions.webhooks.rules import Target, WebhookLabels, has_rule, is_selected
from podfit.core.quantity import ZERO
from podfit.decide.pod.fixed_at_start import fixed_at_start
from podfit.decide.resize.checks import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS


def notes(
    snapshot: Snapshot,
    asked: Sequence[tuple[Pod, ResizeRequest]],
    charged: Sequence[ResourceQuota],
    pods: Sequence[PodPlan],
    resized: Mapping[str, Pod],
    *,
    also_template: bool,
) -> Iterator[str]:
    """`charged` are the quotas as they stand after it, `pods` what is planned, `resized` by UID how pods would be."""
    if snapshot.age.caveat:
        yield snapshot.age.caveat
    if any(pod.shrink for pod in pods) and snapshot.usage is None:
        yield from snapshot.no_usage
    yield from _quota_notes(snapshot.quotas, charged)
    yield from dict.fromkeys(
        f"{text} stay as they are: a resize removes none" for pod, request in asked for text in _left(request, pod)
    )
    yield from dict.fromkeys(text for pod in pods for text in _for_good(pod))
    yield from dict.fromkeys(text for text in not_following(pods, snapshot.pods))
    changes = [(pod, request) for pod, request in asked if not request.undo]
    yield from _policy_notes(snapshot)
    template = snapshot.template if snapshot.pods and not also_template else None
    if template is not None and any(_undone(template, request) for _, request in changes):
        autoscalers = [request.autoscaler for _, request in changes if request.autoscaler]
        sizes = f"vpa/{autoscalers[0]} gives new pods their sizes" if autoscalers else _when_it_counts(snapshot.pods)
        yield f"the template is not changed: {sizes}"
    yield from (f"{pod.metadata.name}: {text}" for pod in snapshot.pods for text in troubles(pod))
    own = next((request.autoscaler for _, request in asked if request.autoscaler), "")
    yield from autoscaler_notes(snapshot, resized, charged, own)
    yield from may_refuse(snapshot.foreign_checks, snapshot.pods)
    if any(pod.verdict == DEFERRED for pod in pods) and snapshot.room.problem:
        yield f"whether this cluster makes room is not known: {snapshot.room.problem}"
    if any(pod.verdict == DEFERRED for pod in pods):
        yield from _nodes_on_their_way(snapshot)
    yield from (f"not read: {line}" for line in snapshot.unread)


def _nodes_on_their_way(snapshot: Snapshot) -> Iterator[str]:
    """Where a resize that has to wait would get its room from, if a cluster autoscaler looks at such."""
    outlook = snapshot.scaling.outlook
    if outlook is None or snapshot.scaling.problem or not outlook.resizes:
        return
    coming = [group for group in outlook.groups if group.coming]
    for group in coming:
        nodes = "1 node is" if group.coming == 1 else f"{group.coming} nodes are"
        yield f"{nodes} on the way in group {group.name}, due by {group.due}: a neighbour can move there"
    if not coming:
        yield "the cluster autoscaler makes a place for a resize that waits: a neighbour moves, or a node comes"


def _left(request: ResizeRequest, pod: Pod) -> Iterator[str]:
    """What stays of the sizes that a pod has; of a pod that there is no size to go back to nothing is wanted."""
    if not request.undo or can_undo(pod):
        yield from staying(request, pod)


def _for_good(pod: PodPlan) -> Iterator[str]:
    """Amounts where there were none: the API lets nobody take them away again while the pod lives."""
    if not pod.sendable:
        return
    new: dict[tuple[str, str], list[str]] = {}
    for change in pod.changes:
        if not change.before:
            new.setdefault((change.container, change.resource), []).append(change.side[:-1])
    for (container, resource), sides in new.items():
        whose = f'of "{container}"' if container else "of the pod"
        text = f"{resource} {' and '.join(sides)} {whose} {'is' if len(sides) == 1 else 'are'} new"
        yield f"{text}: no resize can remove what was once set, so --undo leaves it"


def not_following(planned: Sequence[PodPlan], pods: Sequence[Pod]) -> Iterator[str]:
    """Settings of processes that stay what they are when the container's size becomes another one."""
    by_name = {(pod.metadata.namespace, pod.metadata.name): pod for pod in pods}
    for plan in (plan for plan in planned if plan.sendable):
        changed = {(change.container, change.resource, change.side) for change in plan.changes}
        restarted = {restart.container for restart in plan.restarts}
        for setting in fixed_at_start(by_name[plan.namespace, plan.pod].spec):
            stays = setting.lasting or setting.container not in restarted
            if stays and any((setting.sized, setting.resource, side) in changed for side in setting.sides):
                yield str(setting)


def _policy_notes(snapshot: Snapshot) -> Iterator[str]:
    """They decide about Guaranteed pods only."""
    for name in sorted({pod.spec.node_name for pod in snapshot.pods if pod.status.qos_class == "Guaranteed"}):
        policies = snapshot.policies.get(name)
        if policies is not None and policies.problem:
            yield (
                f"node {name} is assumed to have no static CPU and memory managers, as its configuration was not "
                f"read: {policies.problem}"
            )


def _when_it_counts(pods: Sequence[Pod]) -> str:
    """When pods get the template's sizes again: a Job and a ReplicationController roll nothing out."""
    kinds = {owner.kind for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    if kinds & {"Job", "ReplicationController"}:
        return "a pod that is made anew has its sizes"
    return "the next rollout goes back to its sizes"


def _undone(template: PodSpec, request: ResizeRequest) -> bool:
    pod = Pod(spec=template)
    return apply_to_template(request, pod).spec != template


def _quota_notes(before: Sequence[ResourceQuota], after: Sequence[ResourceQuota]) -> Iterator[str]:
    for old, new in zip(before, after, strict=True):
        for name, used in new.status.used.items():
            was = old.status.used.get(name, ZERO)
            if used != was:
                resource = name.rpartition(".")[2]
                amounts = (readable_amount(resource, str(amount)) for amount in (was, used, new.status.hard[name]))
                yield "quota {}: {} {} → {} of {}".format(new.metadata.name, name, *amounts)


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
