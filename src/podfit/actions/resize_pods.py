"""Carries out a resize plan pod by pod: PATCHes `pods/resize`, and keeps the earlier sizes in an annotation for
`--undo`.

Pods are resized one after the other, in the plan's order; one that gives up room is waited for before the next is asked
for. The first that is refused, or that a disruption budget protects from the restart it needs, ends it: what is done is
done and told, what is left is left as it was.

    before ──annotation──▶ resize ──▶ watched until it is complete, waits, or fails
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.answers.ages import Age
from podfit.answers.budgets import budgets_of, protects
from podfit.answers.commands import HERE, Commands
from podfit.answers.kinds import PODS
from podfit.answers.plan_result import DEFERRED, ERROR, UNCHANGED, Plan, PodPlan
from podfit.answers.pod_state import ENDED, FAILING, INFEASIBLE, SETTLED, granted
from podfit.answers.resize_request import BEFORE, ResizeRequest, apply, remembered, with_template
from podfit.answers.snapshot import Snapshot
from podfit.answers.template import REFUSED as TEMPLATE_REFUSED
from podfit.answers.why import PodWhy, why_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.client.rest import MERGE_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

log = logging.getLogger(__name__)

GIVING_SECONDS = 10.0
"""Options long a pod that gives up room is waited for when nobody asked to wait."""
SHRINK = "podfit.dev/memory-shrink"
"""Options a node of podfit's own lowers the pod's memory limit (docs/shrink.md)."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`state` is done, waits, failed, refused, protected, unchanged or accepted (a dry run); `seconds` until then."""

    pod: str
    state: str
    text: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.state in ("done", "unchanged", "accepted")

    @property
    def ends(self) -> bool:
        """Whether nothing further is tried."""
        return self.state in ("refused", "protected", "failed")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` in seconds for each pod; `guarded` lowers memory limits step by step on podfit's own nodes; `disrupt`
    goes on when that ends other pods or begins a rollout.
    """

    wait: bool = False
    dry_run: bool = False
    timeout: float = 60.0
    guarded: bool = False
    disrupt: bool = False
    commands: Commands = HERE


def objection(plan: Plan, options: Options) -> tuple[str, str]:
    """What speaks against beginning at all, and what helps; empty when nothing does. What a plan's pods say is seen."""
    ended = sorted({name for pod in plan.pods for name in pod.ends})
    template, allow = plan.template, "to do it all the same, add:  --allow-disruption"
    if template is not None and template.verdict == TEMPLATE_REFUSED:
        return f"the template of {template.target} cannot be changed: {template.text}", template.fix
    if ended and not options.disrupt:
        return f"{', '.join(ended)} would be ended to make room", allow
    if template is not None and not template.good and not options.disrupt:
        return f"the template of {template.target}: {template.text}", template.fix or allow
    return "", ""


def may_begin(planned: PodPlan, *, guarded: bool) -> bool:
    """Whether the resize is to be sent, or waited for. One that will fail is not, unless it has failed already and is
    only waited for, or its memory is lowered step by step.
    """
    if planned.verdict == ERROR:
        return guarded or planned.repeated
    return planned.good or planned.verdict == DEFERRED


class Progress:
    """Options far it has come, for whoever asks in the middle.

    `pod` is the one whose turn it is. Its resize has been sent when the API server has answered; `seen` is what became
    of it so far, when it is waited for.
    """

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.pod = ""
        self.sending = self.sent = False
        self.seen: PodWhy | None = None

    def turn(self, pod: str) -> None:
        self.pod, self.sending, self.sent, self.seen = pod, False, False, None

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.turn("")


async def carry_out(
    client: Client,
    snapshot: Snapshot,
    request: ResizeRequest,
    plan: Plan,
    options: Options,
    clock: Clock,
    *,
    progress: Progress | None = None,
) -> AsyncIterator[Outcome]:
    """One outcome a pod, as they are done. Raises ConnectionError when the server goes away."""
    progress = progress or Progress()
    request = with_template(request, snapshot.template or snapshot.owner_template, snapshot.limit_ranges)
    budgets = await budgets_of(client, snapshot.namespace)
    pods = {pod.metadata.name: pod for pod in snapshot.pods}
    for index, planned in enumerate(plan.pods):
        needed = planned.gives and any(later.node == planned.node for later in plan.pods[index + 1 :])
        waits = (
            replace(options, wait=True, timeout=options.timeout if options.wait else GIVING_SECONDS)
            if needed
            else options
        )
        progress.turn(planned.pod)
        outcome = await _one(
            client,
            snapshot,
            request,
            pods[planned.pod],
            planned,
            waits,
            clock=clock,
            budgets=budgets,
            progress=progress,
        )
        progress.ended(outcome)
        yield outcome
        if outcome.ends:
            return


async def _one(
    client: Client,
    snapshot: Snapshot,
    request: ResizeRequest,
    pod: Pod,
    planned: PodPlan,
    options: Options,
    *,
    clock: Clock,
    budgets: tuple[PodDisruptionBudget, ...],
    progress: Progress,
) -> Outcome:
    name, namespace = pod.metadata.name, pod.metadata.namespace
    if planned.verdict == UNCHANGED:
        return Outcome(pod=name, state="unchanged")
    if not may_begin(planned, guarded=options.guarded):
        return Outcome(pod=name, state="refused", text=planned.text)
    guard = next((budget for budget in budgets if planned.restarts and protects(budget, pod)), None)
    if guard is not None:
        text = f"a restart would break the disruption budget {guard.metadata.name}"
        return Outcome(pod=name, state="protected", text=text)
    started = clock.monotonic()
    if planned.repeated and not options.wait and not options.guarded:
        return Outcome(pod=name, state="waits", text=f"asked for already: {planned.text}")
    progress.sending = not options.dry_run
    try:
        if not options.dry_run:
            await _annotate(client, pod, request, snapshot.age, guarded=options.guarded)
        sent = await client.patch(
            PODS,
            name,
            namespace,
            difference(apply(request, pod), pod),
            dry_run=options.dry_run,
            field_manager="podfit",
            subresource="resize" if snapshot.age.has_subresource else "",
        )
    except ApiError as error:
        return Outcome(pod=name, state="refused", text=error.message)
    if options.dry_run or not options.wait:
        return Outcome(pod=name, state="accepted", seconds=clock.monotonic() - started)
    progress.sent = True
    state, text = await _watched(client, sent, snapshot, options.timeout, clock, progress, repeated=planned.repeated)
    return Outcome(pod=name, state=state, text=text, seconds=round(clock.monotonic() - started, 3))


def difference(wanted: Pod, stored: Pod) -> dict[str, Any]:
    """A strategic merge patch of the resources that are to be other ones."""
    spec: dict[str, Any] = {}
    for field, wire in (("init_containers", "initContainers"), ("containers", "containers")):
        pairs = zip(getattr(wanted.spec, field), getattr(stored.spec, field), strict=True)
        changed = [{"name": new.name, "resources": codec.to_dict(new.resources)} for new, old in pairs if new != old]
        spec |= {wire: changed} if changed else {}
    if wanted.spec.resources != stored.spec.resources:
        spec["resources"] = codec.to_dict(wanted.spec.resources)
    return {"spec": spec}


async def _annotate(client: Client, pod: Pod, request: ResizeRequest, age: Age, *, guarded: bool) -> None:
    """Remember what the pod had been granted, unless an earlier resize has; an undone resize is forgotten."""
    annotations: dict[str, str | None] = {}
    if request.undo:
        annotations[BEFORE] = None
    elif BEFORE not in pod.metadata.annotations:
        annotations[BEFORE] = remembered(granted(pod, age))
    if guarded:
        annotations[SHRINK] = "guarded"
    if annotations:
        patch = {"metadata": {"annotations": annotations}}
        await client.patch(PODS, pod.metadata.name, pod.metadata.namespace, patch, content_type=MERGE_PATCH)


async def _watched(
    client: Client, pod: Pod, snapshot: Snapshot, timeout: float, clock: Clock, progress: Progress, *, repeated: bool
) -> tuple[str, str]:
    """Follow the pod until its resize is over; one that only waits is waited for as long as there is time.

    `repeated`: nothing was sent, so it may be over already.
    """
    progress.seen = seen = why_pod(pod, snapshot, clock.now())
    if repeated and (over := _over(seen)):
        return over
    loop, scope = asyncio.get_running_loop(), asyncio.timeout(None)
    timer = clock.call_later(timeout, lambda: scope.reschedule(loop.time()))
    try:
        async with scope:
            events = client.watch(
                PODS,
                pod.metadata.namespace,
                resource_version=pod.metadata.resource_version,
                fields=f"metadata.name={pod.metadata.name}",
                timeout=max(1, round(timeout)),
            )
            async with aclosing(events):
                async for event in events:
                    if event.type == "BOOKMARK":
                        continue
                    if event.type == "DELETED":
                        return "failed", "the pod was deleted"
                    progress.seen = seen = why_pod(event.object, snapshot, clock.now())
                    if over := _over(seen):
                        return over
    except TimeoutError:
        log.debug("time is up pod=%s state=%s", pod.metadata.name, seen.state)
    finally:
        timer.cancel()
    state = "failed" if seen.state == FAILING else "waits"
    return state, seen.message or f"still {seen.state} after {timeout:g} s"


def _over(seen: PodWhy) -> tuple[str, str] | None:
    """What became of a resize that is over."""
    if seen.state == SETTLED:
        return "done", ""
    return ("failed", seen.message) if seen.state in (INFEASIBLE, ENDED) else None
