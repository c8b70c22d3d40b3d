"""One look of the cluster autoscaler, in upstream's order (core/static_autoscaler.go).

    what did not come ─▶ is the cluster well ─▶ demand ─▶ scale-up ─▶ scale-down ─▶ status and outlook

Whatever ends a look early, the status is written.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.durations import go_duration
from podfit.core.quantity import ZERO
from podfit.core.times import format_time, seconds_later
from podfit.decide.capacity.backoff import current, failed
from podfit.decide.capacity.demand import by_node, cluster_to_be, demand, fitted
from podfit.decide.capacity.drain import DrainContext, DrainOptions
from podfit.decide.capacity.look import (
    NORMAL,
    WARNING,
    DeleteInstances,
    Effect,
    Increase,
    Look,
    LowerTarget,
    Moment,
    RemoveNode,
    Removing,
    Report,
    Say,
    ScaleUp,
    SoftTaint,
    State,
    WrongSize,
)
from podfit.decide.capacity.outlook import Act
from podfit.decide.capacity.readiness import CANDIDATE, age, is_going, is_ready
from podfit.decide.capacity.registered import ClusterCounts, GroupState, registered
from podfit.decide.capacity.reports import UPCOMING, Seen, report
from podfit.decide.capacity.scale_down import Candidate, Going, unneeded_nodes, who_goes
from podfit.decide.capacity.scale_up import GIB, MAX_TOTAL, GrowthLeft, ScaleUpPlan, plan_scale_up
from podfit.decide.capacity.settings import AutoscalerSettings, DrainSettings
from podfit.decide.capacity.templates import template_of
from podfit.decide.capacity.waiting_resizes import ResizeDemand, resize_demand
from podfit.decide.placement.view import NodeInfo

NO_SCALE_UP = "pod didn't trigger scale-up: "
MOST_SAID = 20_000
"""Texts of events that are remembered."""


def look_at(state: State, look: Look, moment: Moment, settings: AutoscalerSettings) -> tuple[State, tuple[Effect, ...]]:
    looking = _Looking(state, look, moment, settings)
    looking.run()
    return looking.state, tuple(looking.effects)


class _Looking:
    def __init__(self, state: State, look: Look, moment: Moment, settings: AutoscalerSettings) -> None:
        self.look, self.moment, self.settings = look, moment, settings
        self.state = _without_the_gone(state, look, moment, settings)
        self.effects: list[Effect] = []
        self.context = DrainContext(
            now=moment.now, options=drain_rules(settings.drain), budgets=look.budgets, controllers=look.controllers
        )

    def run(self) -> None:
        counts, seen = registered(self.look, self.state, self.moment, self.settings), Seen()
        for text in (self.look.problem, *self.look.refused):
            if text:
                self._say(Say(None, WARNING, "NodeGroupProviderFailed", text))
        for group in self.look.groups:
            if group.problem:
                self._say(
                    Say(None, WARNING, "NodeGroupRefused", f"Node group {group.id} is left alone: {group.problem}")
                )
        if not self.look.problem:
            self._what_did_not_come(counts)
            counts = registered(self.look, self.state, self.moment, self.settings)
            if not counts.healthy:
                self._say(Say(None, WARNING, "ClusterUnhealthy", "Cluster is unhealthy"))
                self.state = replace(self.state, unneeded={})
            elif not self._sizes_mended(counts):
                seen = self._scale(counts)
        self._report(counts, seen)

    # ------------------------------------------------------------------ what was asked for

    def _what_did_not_come(self, counts: ClusterCounts) -> None:
        for group in counts.groups:
            if not group.group.problem:
                self._failed_instances(group)
                self._late_instances(group)
                self._request(group)

    def _request(self, group: GroupState) -> None:
        """Whether the nodes that were asked for are there (C-015). A node that registered and is not ready in time has
        not come either."""
        request, name = group.request, group.group.id
        if request is None:
            return
        passed = self.moment.at - request.at
        unready = sum(1 for node, _ in group.nodes if not is_ready(node) and age(node, self.moment.now) <= passed + 1)
        absent = group.missing + len(group.late)
        if not absent and not unready:
            self.state = replace(self.state, requests=_without(self.state.requests, name))
        elif passed > self.settings.provision_time:
            verb = "failed to register" if absent > group.counts.not_started else "were not ready"
            text = f"Nodes added to group {name} {verb} within {go_duration(self.settings.provision_time)}"
            self._say(Say(None, WARNING, "ScaleUpTimedOut", text))
            self.state = replace(self.state, requests=_without(self.state.requests, name))
            self._back_off(name, "timeout", text)
            given_up = min(request.nodes, group.group.target - len(group.group.instances))
            if given_up > 0:
                self.effects.append(LowerTarget(name, given_up))

    def _failed_instances(self, group: GroupState) -> None:
        """C-016. Each is told once, and deleted until it is gone."""
        bad = [instance for instance in group.group.instances if instance.failed]
        if not bad:
            return
        new = [instance for instance in bad if instance.id not in self.state.failed]
        name = group.group.id
        for code in sorted({instance.error_code for instance in new}):
            some = [instance for instance in new if instance.error_code == code]
            errors = ", ".join(sorted({instance.error_message for instance in some}))
            text = f"Failed adding {len(some)} nodes to group {name} due to {code}; source errors: {errors}"
            self.effects.append(Say(None, WARNING, "ScaleUpFailed", text))
            self._back_off(name, code, errors)
        request = self.state.requests.get(name)
        if request is not None and new:
            left = request.nodes - len(new)
            requests = _without(self.state.requests, name)
            self.state = replace(
                self.state, requests={**requests, name: replace(request, nodes=left)} if left > 0 else requests
            )
        self.state = replace(self.state, failed=self.state.failed | {instance.id for instance in bad})
        self.effects.append(DeleteInstances(name, tuple(instance.id for instance in bad), "DeleteFailed"))

    def _late_instances(self, group: GroupState) -> None:
        """Machines that never became Nodes; the group keeps its least size."""
        spare = group.group.target - group.group.min_size
        ids = tuple(instance.id for instance in group.late)[: max(spare, 0)]
        if ids:
            self.effects.append(DeleteInstances(group.group.id, ids, "DeleteUnregistered"))

    def _sizes_mended(self, counts: ClusterCounts) -> bool:
        """A group that has had another number of instances than its target for long gets that target; then the look
        ends. A target is never raised here."""
        wrong: dict[str, WrongSize] = {}
        mended = False
        for group in counts.groups:
            there, target, name = len(group.group.instances), group.group.target, group.group.id
            if there == target or group.group.problem or group.request is not None:
                continue
            before = self.state.wrong_sizes.get(name)
            same = before is not None and (before.there, before.target) == (there, target)
            since = before.at if before is not None and same else self.moment.at
            wrong[name] = WrongSize(there, target, since)
            if self.moment.at - since >= self.settings.provision_time and there < target:
                self.effects.append(LowerTarget(name, target - there))
                mended = True
        self.state = replace(self.state, wrong_sizes=wrong)
        return mended

    def _back_off(self, group: str, code: str, text: str) -> None:
        pause = failed(self.state.backoffs.get(group), self.moment.at, self.settings.backoff, code, text)
        self.state = replace(self.state, backoffs={**self.state.backoffs, group: pause})

    # ------------------------------------------------------------------ up and down

    def _scale(self, counts: ClusterCounts) -> Seen:
        look, settings = self.look, self.settings
        on_node = by_node(look.pods)
        templates = {
            group.group.id: template
            for group in counts.groups
            if (template := template_of(group, on_node, look.daemon_sets, look.gates)) is not None
        }
        wanted = demand(look.pods, self.moment.now, settings.scale_up)
        cluster = cluster_to_be(look, counts, templates, settings.scale_up, sizes={})
        there = fitted(cluster, wanted.pods)
        resizes = ResizeDemand()
        if settings.scale_up.waiting_resizes:
            resizes = resize_demand(look, self.moment, settings, cluster, self.context, self.state)
        if wanted.all_young:
            return Seen(young=True, resizes=self._next_look(resizes))
        spare = fitted(cluster, look.buffers)
        self.effects += (*resizes.shrinks, *resizes.moves)
        homeless = (*there.left, *resizes.pods, *spare.left)
        plan = ScaleUpPlan()
        if homeless:
            pairs = [(group, templates.get(group.group.id)) for group in counts.groups]
            plan = self._planned(
                counts,
                plan_scale_up(
                    cluster,
                    homeless,
                    pairs,
                    self._room(counts, templates),
                    settings.scale_up,
                    (look.priorities, look.draw),
                ),
                homeless,
            )
        self._grow(plan, resizes)
        upcoming = tuple(view for view in cluster.views if UPCOMING in view.name)
        seen = Seen(there=there, resizes=resizes, plan=plan, upcoming=upcoming)
        return self._shrink(counts, templates, (*wanted.pods, *resizes.pods, *look.buffers), seen)

    def _next_look(self, resizes: ResizeDemand) -> ResizeDemand:
        """What is to be told of them in a look that does nothing yet."""
        begins = format_time(seconds_later(self.moment.now, self.settings.interval))
        idle = (Act.WAIT, Act.NOTHING)
        outlooks = (one if one.act in idle or one.begins else replace(one, begins=begins) for one in resizes.outlooks)
        return ResizeDemand(outlooks=tuple(outlooks))

    def _planned(self, counts: ClusterCounts, plan: ScaleUpPlan, pods: Sequence[Pod]) -> ScaleUpPlan:
        """C-040: at the largest number of nodes nothing is tried."""
        most = self.settings.scale_up.most_nodes
        if plan.capped and most:
            self._say(Say(None, WARNING, "MaxNodesTotalReached", f"Max total nodes in cluster reached: {most}"))
        if most and counts.counts.ready >= most:
            return ScaleUpPlan(rejected={pod.metadata.uid: MAX_TOTAL for pod in pods})
        return plan

    def _room(self, counts: ClusterCounts, templates: Mapping[str, NodeInfo]) -> GrowthLeft:
        """What the cluster may still grow by, with what is to come."""
        nodes = [node for node in self.look.nodes if not is_going(node)]
        sizes = [node.status.capacity for node in nodes]
        coming = 0
        for group in counts.groups:
            unseen = max(group.missing - group.counts.not_started, 0)
            coming += unseen
            if (template := templates.get(group.group.id)) is not None:
                sizes += [template.node.status.capacity] * unseen
        settings = self.settings.scale_up
        cores = sum(size.get("cpu", ZERO).milli() for size in sizes) / 1000
        memory = sum(size.get("memory", ZERO).value() for size in sizes) / GIB
        most = max(settings.most_nodes - len(nodes) - coming, 0) if settings.most_nodes else None
        return GrowthLeft(most, settings.cores.most - cores, settings.memory.most - memory)

    def _grow(self, plan: ScaleUpPlan, resizes: ResizeDemand) -> None:
        self.effects += [Say(None, WARNING, event.reason, event.message) for event in plan.events]
        increases = plan.increases or self._least_sizes()
        for increase in increases:
            group = increase.group
            text = f"group {group.id} size to {increase.size} instead of {group.target} (max: {group.max_size})"
            self.effects.append(Say(None, NORMAL, "ScaledUpGroup", f"Scale-up: setting {text}"))
        if increases:
            buffers = {pod.metadata.uid for pod in self.look.buffers}
            pods = [resizes.real.get(pod.metadata.uid, pod) for pod in plan.pods if pod.metadata.uid not in buffers]
            self.effects.append(ScaleUp(increases, tuple(pods)))
        if not plan.increases:
            self._not_triggered(plan, resizes)

    def _least_sizes(self) -> tuple[Increase, ...]:
        if not self.settings.enforce_min_size:
            return ()
        return tuple(
            Increase(group, group.min_size - group.target)
            for group in self.look.groups
            if group.target < group.min_size and not group.problem and group.id not in self.state.backoffs
        )

    def _not_triggered(self, plan: ScaleUpPlan, resizes: ResizeDemand) -> None:
        waiting = {pod.metadata.uid: pod for pod in self.look.pods}
        for uid, why in plan.rejected.items():
            if uid in resizes.real:
                text = f"No node group has a node that would make place for its resize: {why}"
                self._say(Say(resizes.real[uid], WARNING, "NoNodeForResize", text))
            elif uid in waiting:
                self._say(Say(waiting[uid], NORMAL, "NotTriggerScaleUp", f"{NO_SCALE_UP}{why}"))

    # ------------------------------------------------------------------ down

    def _shrink(
        self, counts: ClusterCounts, templates: Mapping[str, NodeInfo], expected: Sequence[Pod], seen: Seen
    ) -> Seen:
        """`expected` are pods that are about to come; nodes that they would run on are needed."""
        settings = self.settings
        if not settings.scale_down.enabled:
            self.state = replace(self.state, unneeded={}, kept={})
            self._soft_taints((), frozenset())
            return seen
        to_be = cluster_to_be(self.look, counts, templates, settings.scale_up, sizes=self.look.recommended)
        fitted(to_be, expected)
        real = {node.metadata.name for node in self.look.nodes}
        views = [view for view in to_be.views if view.name in real]
        unneeded = unneeded_nodes(views, self.look, counts, self.state, self.moment, (settings, self.context))
        since = self.state.unneeded
        kept_since = {name: since[name] for name in unneeded.later if name in since}
        candidates = {
            one.node.metadata.name: since.get(one.node.metadata.name, self.moment.at) for one in unneeded.candidates
        }
        self.state = replace(self.state, unneeded={**kept_since, **candidates}, kept=unneeded.kept)
        self._soft_taints(unneeded.candidates, unneeded.later)
        going = who_goes(unneeded.candidates, self.state, counts, self.moment.at, settings)
        if seen.plan.increases or seen.resizes.moves or seen.resizes.shrinks:
            going = Going((), going.waiting, going.due)
        for candidate in going.now:
            self._remove(candidate)
        return replace(seen, unneeded=unneeded, going=going)

    def _remove(self, candidate: Candidate) -> None:
        node, plan = candidate.node, candidate.found.plan
        moves = [move.pod for move in candidate.found.moves]
        here = {pod.metadata.uid for pod in self.look.pods if pod.spec.node_name == node.metadata.name}
        self.effects.append(
            RemoveNode(
                node=node,
                group=candidate.group.group.id,
                move=tuple(pod for pod in moves if pod.metadata.uid in here),
                daemon_set=plan.daemon_set,
                utilization=candidate.share,
            )
        )
        removing = Removing(candidate.group.group.id, not candidate.empty)
        self.state = replace(self.state, removing={**self.state.removing, node.metadata.name: removing})

    def _soft_taints(self, candidates: Iterable[Candidate], later: frozenset[str]) -> None:
        wanted = {candidate.node.metadata.name for candidate in candidates}
        changes = []
        for node in self.look.nodes:
            name = node.metadata.name
            has = any(taint.key == CANDIDATE for taint in node.spec.taints)
            if has != (name in wanted) and name not in later and not is_going(node):
                changes.append(SoftTaint(name, not has))
        self.effects += changes[: self.settings.scale_down.soft_taints]

    # ------------------------------------------------------------------ telling

    def _say(self, said: Say) -> None:
        """Once, until the text is another one."""
        key = said.about.metadata.uid if said.about is not None else "", f"{said.reason} {_subject(said)}"
        if self.state.said.get(key) != said.message:
            self.state = replace(self.state, said={**self.state.said, key: said.message})
            self.effects.append(said)

    def _report(self, counts: ClusterCounts, seen: Seen) -> None:
        status, outlook = report(self.look, counts, self.state, self.moment, self.settings, seen)
        self.state = replace(self.state, status=status)
        self.effects.append(Report(status, outlook))


def _subject(said: Say) -> str:
    """What tells apart events of one reason about the status: their first words."""
    return said.message[:60] if said.about is None else ""


def drain_rules(settings: DrainSettings) -> DrainOptions:
    return DrainOptions(
        skip_nodes_with_system_pods=settings.system_pods,
        skip_nodes_with_local_storage=settings.local_storage,
        skip_nodes_with_custom_controller_pods=settings.custom_controllers,
        min_replica_count=settings.least_replicas,
        blocking_system_pod_timeout=timedelta(seconds=settings.system_pod_timeout),
    )


T = TypeVar("T")


def _without(requests: Mapping[str, T], name: str) -> dict[str, T]:
    return {key: value for key, value in requests.items() if key != name}


def _without_the_gone(state: State, look: Look, moment: Moment, settings: AutoscalerSettings) -> State:
    """Nothing is remembered of what is not there any more, but for a provider that does not answer."""
    pods = {pod.metadata.uid for pod in look.pods} | {node.metadata.uid for node in look.nodes} | {""}
    said = {key: text for key, text in state.said.items() if key[0] in pods}
    moves = {uid: at for uid, at in state.moves.items() if uid in pods}
    unwilling = {uid: offer for uid, offer in state.unwilling.items() if uid in pods}
    state = replace(state, said=said if len(said) <= MOST_SAID else {}, moves=moves, unwilling=unwilling)
    if look.problem:
        return state
    nodes = {node.metadata.name for node in look.nodes}
    provided = {node.spec.provider_id for node in look.nodes}
    instances = {instance.id for group in look.groups for instance in group.instances}
    names = {group.id for group in look.groups}
    backoffs = {
        name: pause for name, pause in state.backoffs.items() if current(pause, moment.at, settings.backoff) is not None
    }
    return replace(
        state,
        backoffs=backoffs,
        requests={name: request for name, request in state.requests.items() if name in names},
        unneeded={name: since for name, since in state.unneeded.items() if name in nodes},
        unregistered={name: state.unregistered.get(name, moment.at) for name in sorted(instances - provided)},
        failed=state.failed & instances,
        steady={name: until for name, until in state.steady.items() if until > moment.at},
        removed={name: at for name, at in state.removed.items() if moment.at - at < settings.backoff.reset},
    )
