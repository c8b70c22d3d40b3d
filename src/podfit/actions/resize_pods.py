"""Carries out a resize plan pod by pod: PATCHes `pods/resize`, and keeps the earlier sizes in an annotation for
`--undo`.

Pods are resized one after the other, in the plan's order; one that gives up room is waited for before the next is asked
for. A pod that waits for a size which is no longer wanted is told so first: room that another gives up would grant it.
The first that is refused, or that a disruption budget protects from the restart it needs, ends it: what is done is
done and told, what is left is left as it was.

    before ──annotation──▶ resize ──▶ watched until it is complete, waits, or fails

Everything that is told was read back: sizes from the API's answer, the state from the pod. Without `wait` that is one
short look for all pods together, when all were asked.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from podfit.actions.follow import Follow, Follower
from podfit.answers.facts.ages import Age
from podfit.answers.facts.budgets import cover_both, read_budgets
from podfit.answers.facts.commands import HERE, Commands
from podfit.answers.facts.kinds import PODS
from podfit.answers.facts.pod_state import granted
from podfit.answers.facts.snapshot import PodName
from podfit.answers.plan.changes import ResourceChange, resizing
from podfit.answers.plan.read_plan import Planned
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest, apply, remembered
from podfit.answers.plan.result import ERROR, UNCHANGED, Plan, PodPlan
from podfit.answers.plan.template import REFUSED as TEMPLATE_REFUSED
from podfit.answers.why.pods import PodWhy
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import MERGE_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.node.room.annotation import GAVE
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.workload.pods import is_ready

GIVING_SECONDS = 10.0
"""How long a pod that gives up room, or is restarted before another, is waited for when nobody asked to wait."""
LOOK_SECONDS = 2.0
"""How long is looked for what became of all pods, when nobody asked to wait: a node needs less than a tenth of it."""
BUDGET_SECONDS = 1.0
"""After which a disruption budget is read again, whose controller has yet to see that a pod is back."""
LEAST_SECONDS = 0.001
"""That an outcome takes: 0 is said of what was not sent."""
SHRINK = "podfit.dev/memory-shrink"
"""How a node of podfit's own lowers the pod's memory limit (docs/shrink.md)."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`state` is done, waits, failed, refused, protected, unchanged or accepted (a dry run); `seconds` until then.

    `sizes` are those that the API's answer has, beside what the node had granted before.
    """

    pod: str
    state: str
    text: str = ""
    seconds: float = 0.0
    namespace: str = ""
    sizes: tuple[ResourceChange, ...] = ()

    @property
    def good(self) -> bool:
        return self.state in ("done", "unchanged", "accepted")

    @property
    def ends(self) -> bool:
        """Whether nothing further is tried."""
        return self.state in ("refused", "protected", "failed")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` in seconds for each pod; `guarded` lowers memory limits step by step on podfit's own nodes; `disrupt`
    goes on when that ends other pods, begins a rollout, or restarts a pod that a disruption budget protects.
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
    protected = [pod for pod in plan.pods if pod.protected]
    template, allow = plan.template, "to do it all the same, add:  --allow-disruption"
    if plan.doubts:
        return plan.doubts[0], "write what is meant, such as 128Mi"
    if template is not None and template.verdict == TEMPLATE_REFUSED:
        return f"the template of {template.target} cannot be changed: {template.text}", template.fix
    if ended and not options.disrupt:
        return f"{', '.join(ended)} would be ended to make room", allow
    if protected and not options.disrupt:
        return f"{', '.join(pod.pod for pod in protected)}: {protected[0].protected}", allow
    if template is not None and not template.good and not options.disrupt:
        return f"the template of {template.target}: {template.text}", template.fix or allow
    return "", ""


def may_begin(planned: PodPlan, options: Options) -> bool:
    """Whether the resize is to be sent, or waited for. One that will fail is not, unless it has failed already and is
    only waited for, or its memory is lowered step by step.
    """
    if planned.protected:
        return options.disrupt
    if planned.verdict == ERROR:
        return options.guarded or planned.repeated
    return planned.sendable


class Progress:
    """How far it has come, for whoever asks in the middle.

    `pod` is the one whose turn it is. Its resize has been sent when the API server has answered; `seen` is what became
    of it so far, when it is waited for. `asked` are pods that were sent and of which nothing has been told yet.
    """

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.asked: list[str] = []
        self.pod = ""
        self.sending = self.sent = False
        self.seen: PodWhy | None = None

    def turn(self, pod: str, *, sent: bool = False) -> None:
        self.pod, self.sending, self.sent, self.seen = pod, sent, sent, None

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.asked = [name for name in self.asked if name != outcome.pod]
        self.turn("")


async def carry_out(
    client: Client, planned: Planned, options: Options, clock: Clock, *, progress: Progress | None = None
) -> AsyncIterator[Outcome]:
    """One outcome a pod, in the plan's order. Raises ConnectionError when the server goes away."""
    async for outcome in _Run(client, planned, options, clock, progress or Progress()).outcomes():
        yield outcome


class _Run:
    def __init__(self, client: Client, planned: Planned, options: Options, clock: Clock, progress: Progress) -> None:
        self._client, self._snapshot, self._plan = client, planned.snapshot, planned.plan
        self._options, self._clock, self._progress = options, clock, progress
        self._requests = {_name(wanted.pod): wanted for wanted in planned.requests}
        self._follower = Follower(client, planned.snapshot, clock)
        self._sent: dict[PodName, tuple[Pod, float]] = {}  # the API's answer, and when it was asked
        self._withdrew: dict[PodName, Pod] = {}  # the API's answer
        self._over: dict[PodName, Outcome] = {}
        self._restarting: list[PodPlan] = []

    async def outcomes(self) -> AsyncIterator[Outcome]:
        held: list[tuple[PodPlan, Outcome | None]] = []
        pods = await self._withdrawn()
        for index, planned in enumerate(pods):
            outcome = await self._one(planned, pods[index + 1 :])
            if outcome is None or held:
                held.append((planned, outcome))
                self._progress.turn("")
            else:
                self._progress.ended(outcome)
                yield outcome
            if outcome is not None and outcome.ends:
                break
        until = self._clock.monotonic() + LOOK_SECONDS
        for planned, outcome in held:
            told = outcome or await self._followed(planned, until - self._clock.monotonic(), brief=True)
            self._progress.ended(told)
            yield told

    async def _withdrawn(self) -> tuple[PodPlan, ...]:
        """The pods to go through, when those that wait for another size have been told the new one, or to stay as they
        are until it is their turn. Where one of these is refused, they are those that were told.
        """
        if self._options.dry_run:
            return self._plan.pods
        for planned in sorted(self._plan.pods, key=lambda pod: not pod.withdraws):
            if not planned.replaces or not may_begin(planned, self._options):
                continue
            if not await (self._stay(planned) if planned.withdraws else self._send(planned)):
                return tuple(pod for pod in self._plan.pods if _key(pod) in self._sent or _key(pod) in self._over)
        return self._plan.pods

    async def _one(self, planned: PodPlan, later: Sequence[PodPlan]) -> Outcome | None:
        """What became of it; None when it was sent and nobody waits for it."""
        options, name = self._options, planned.pod
        if planned.verdict == UNCHANGED:
            return Outcome(pod=name, state="unchanged", namespace=planned.namespace)
        if not may_begin(planned, options):
            state = "protected" if planned.protected else "refused"
            return Outcome(pod=name, state=state, text=planned.text, namespace=planned.namespace)
        if planned.repeated and not options.wait and not options.guarded:
            text = f"asked for already: {planned.text}"
            return Outcome(pod=name, state="waits", text=text, namespace=planned.namespace)
        if _key(planned) not in self._sent:
            await self._send(planned)
        if known := self._over.get(_key(planned)):
            return known
        if options.dry_run:
            return self._told(planned, self._sent[_key(planned)][0], "accepted")
        needed = planned.gives and any(pod.node == planned.node for pod in later)
        if options.wait or needed:
            return await self._followed(planned, options.timeout if options.wait else GIVING_SECONDS)
        return None

    async def _stay(self, planned: PodPlan) -> bool:
        """Withdraw what the pod waits for. Whether the API server took it; what else became of it is then known."""
        pod = self._requests[_key(planned)].pod
        self._progress.turn(planned.pod)
        try:
            self._withdrew[_key(planned)] = await self._patched(
                planned, allocated_form(pod, self._snapshot.age.gates), pod
            )
        except ApiError as error:
            self._refused(planned, error)
            return False
        return True

    async def _patched(self, planned: PodPlan, wanted: Pod, stored: Pod) -> Pod:
        """The API's answer. Raises ApiError."""
        return await self._client.patch(
            PODS,
            planned.pod,
            planned.namespace,
            difference(wanted, stored),
            dry_run=self._options.dry_run,
            field_manager="podfit",
            subresource="resize" if self._snapshot.age.has_subresource else "",
        )

    def _refused(self, planned: PodPlan, error: ApiError) -> None:
        refused = Outcome(pod=planned.pod, state="refused", text=error.message, namespace=planned.namespace)
        self._over[_key(planned)] = refused

    async def _send(self, planned: PodPlan) -> bool:
        """Whether the API server took it; what else became of it is then known."""
        wanted = self._requests[_key(planned)]
        pod, options, progress = wanted.pod, self._options, self._progress
        if text := await self._why_protected(planned, pod):
            self._over[_key(planned)] = Outcome(
                pod=planned.pod, state="protected", text=text, namespace=planned.namespace
            )
            return False
        progress.turn(planned.pod)
        progress.sending = not options.dry_run
        started, age = self._clock.monotonic(), self._snapshot.age
        try:
            if not options.dry_run:
                await _annotate(self._client, pod, wanted.asked, age, guarded=options.guarded)
            sent = await self._patched(planned, apply(wanted.asked, pod), self._withdrew.get(_key(planned), pod))
        except ApiError as error:
            self._refused(planned, error)
            return False
        self._sent[_key(planned)] = sent, started
        progress.sent = not options.dry_run
        if progress.sent:
            progress.asked.append(planned.pod)
        if planned.restarts:
            self._restarting.append(planned)
        return True

    async def _why_protected(self, planned: PodPlan, pod: Pod) -> str:
        """Why a disruption budget does not allow the restart, when another pod of this run was restarted before: that
        one is waited for, and so is the budget's controller. One that waits for room was not. The plan has asked for
        the first of them.
        """
        options, budgets = self._options, self._snapshot.budgets
        if options.disrupt or options.dry_run or not planned.restarts or not self._restarting:
            return ""
        if not cover_both(budgets, pod, [self._requests[_key(other)].pod for other in self._restarting]):
            return ""
        limit = options.timeout if options.wait else GIVING_SECONDS
        for earlier in self._restarting:
            was_ready = is_ready(self._requests[_key(earlier)].pod)
            outcome = await self._followed(earlier, limit, brief=True, ready=was_ready)
            if outcome.state != "waits":
                self._over[_key(earlier)] = outcome
        until = self._clock.monotonic() + limit
        while text := (await read_budgets(self._client, {pod.metadata.namespace})).why_no_restart(pod):
            if self._clock.monotonic() >= until:
                return text
            await self._clock.sleep(BUDGET_SECONDS)
        return ""

    async def _followed(self, planned: PodPlan, timeout: float, *, brief: bool = False, ready: bool = False) -> Outcome:
        """What became of it until then; what is known already is not asked again."""
        if known := self._over.get(_key(planned)):
            return known
        sent, _ = self._sent[_key(planned)]
        self._progress.turn(planned.pod, sent=True)

        def seen(about: PodWhy) -> None:
            self._progress.seen = about

        how = Follow(timeout=timeout, brief=brief, ready=ready)
        last, state, text = await self._follower.follow(sent, how, seen)
        return self._told(planned, last, state, text)

    def _told(self, planned: PodPlan, pod: Pod, state: str, text: str = "") -> Outcome:
        before = allocated_form(self._requests[_key(planned)].pod, self._snapshot.age.gates)
        return Outcome(
            pod=planned.pod,
            state=state,
            text=text,
            seconds=max(round(self._clock.monotonic() - self._sent[_key(planned)][1], 3), LEAST_SECONDS),
            namespace=planned.namespace,
            sizes=tuple(resizing(pod, before)),
        )


def _key(planned: PodPlan) -> PodName:
    return planned.namespace, planned.pod


def _name(pod: Pod) -> PodName:
    return pod.metadata.namespace, pod.metadata.name


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
        annotations = {name: None for name in (BEFORE, GAVE) if name in pod.metadata.annotations}
    elif BEFORE not in pod.metadata.annotations:
        annotations[BEFORE] = remembered(granted(pod, age))
    if guarded:
        annotations[SHRINK] = "guarded"
    if annotations:
        patch = {"metadata": {"annotations": annotations}}
        await client.patch(PODS, pod.metadata.name, pod.metadata.namespace, patch, content_type=MERGE_PATCH)
