"""What a look is told as: upstream's status, and the outlook that `podfit why` reads."""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import format_time, seconds_later
from podfit.decide.capacity.demand import Fitted, is_unschedulable
from podfit.decide.capacity.look import Kept, Look, Moment, State
from podfit.decide.capacity.outlook import MOST_TOLD, Act, GroupOutlook, NodeOutlook, Outlook, PodOutlook, coming_node
from podfit.decide.capacity.registered import ClusterCounts, GroupState
from podfit.decide.capacity.scale_down import Going, Unneeded
from podfit.decide.capacity.scale_up import ScaleUpPlan
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.capacity.status import AutoscalerStatus, GroupFacts, status_of
from podfit.decide.capacity.waiting_resizes import ResizeDemand
from podfit.decide.placement.view import NodeInfo

UPCOMING = "-upcoming-"
TEMPLATE = "template-node-for-"
NOBODY = Fitted((), {})
NONE_UNNEEDED = Unneeded((), {}, frozenset())
NOBODY_GOES = Going((), {}, {})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided in a look; `young`: nothing, since all pods that wait have only come. `upcoming` are nodes on
    their way, with the pods that wait for them."""

    there: Fitted = NOBODY
    resizes: ResizeDemand = ResizeDemand()
    plan: ScaleUpPlan = ScaleUpPlan()
    unneeded: Unneeded = NONE_UNNEEDED
    going: Going = NOBODY_GOES
    upcoming: tuple[NodeInfo, ...] = ()
    young: bool = False


def report(
    look: Look, counts: ClusterCounts, state: State, moment: Moment, settings: AutoscalerSettings, seen: Seen
) -> tuple[AutoscalerStatus, Outlook]:
    telling = _Telling(look, counts, state, moment, settings, seen)
    return telling.status(), telling.outlook()


class _Telling:
    def __init__(
        self, look: Look, counts: ClusterCounts, state: State, moment: Moment, settings: AutoscalerSettings, seen: Seen
    ) -> None:
        self.look, self.counts, self.state, self.moment = look, counts, state, moment
        self.settings, self.seen = settings, seen
        self.growing = {increase.group.id: increase.by for increase in seen.plan.increases}

    def status(self) -> AutoscalerStatus:
        per_group = Counter(one.group.group.id for one in self.seen.unneeded.candidates)
        facts = tuple(
            GroupFacts(
                group=group.group,
                counts=group.counts,
                healthy=group.healthy and not group.group.problem,
                growing=bool(group.request is not None or group.group.id in self.growing),
                backoff=group.backoff,
                candidates=per_group.get(group.group.id, 0),
            )
            for group in self.counts.groups
        )
        time = format_time(self.moment.now)
        return status_of(time, self.state.status, facts, self.counts.counts, healthy=self.counts.healthy)

    def outlook(self) -> Outlook:
        pods = [*self._resizes(), *self._pending()]
        groups = [self._group(group) for group in self.counts.groups]
        nodes = list(self._nodes())
        groups_of = ((view, _group_of(view.name)) for view in self.seen.upcoming[:MOST_TOLD])
        coming = [coming_node(view, group, self._due(group)) for view, group in groups_of]
        parts = (pods, groups, nodes)
        return Outlook(
            time=format_time(self.moment.now),
            until=format_time(seconds_later(self.moment.now, 3 * self.settings.interval)),
            pods=tuple(pods[:MOST_TOLD]),
            groups=tuple(groups[:MOST_TOLD]),
            nodes=tuple(nodes[:MOST_TOLD]),
            coming=tuple(coming),
            resizes=self.settings.scale_up.waiting_resizes,
            shrinks=self.settings.scale_up.shrinks,
            delay=self.settings.scale_up.resize_delay,
            left_out=sum(max(len(part) - MOST_TOLD, 0) for part in parts),
        )

    # ------------------------------------------------------------------ groups

    def _group(self, group: GroupState) -> GroupOutlook:
        name, own = group.group.id, group.group
        coming = group.missing + self.growing.get(name, 0)
        return GroupOutlook(
            name=name,
            size=own.target + self.growing.get(name, 0),
            min_size=own.min_size,
            max_size=own.max_size,
            ready=group.counts.ready,
            coming=coming,
            due=self._due(name) if coming else "",
            grows=group.cannot_grow,
            backoff_until=self._at(group.backoff.until) if group.backoff is not None else "",
            problem=own.problem or (group.backoff.text if group.backoff is not None else ""),
        )

    def _due(self, group: str) -> str:
        """Until when its nodes should be there."""
        request = self.state.requests.get(group)
        began = self.moment.at if group in self.growing or request is None else request.at
        return self._at(began + self.settings.provision_time)

    def _at(self, at: float) -> str:
        return format_time(seconds_later(self.moment.now, at - self.moment.at))

    # ------------------------------------------------------------------ pods

    def _resizes(self) -> Iterator[PodOutlook]:
        standing = {(pod.metadata.namespace, pod.metadata.name): uid for uid, pod in self.seen.resizes.real.items()}
        for told in self.seen.resizes.outlooks:
            uid = standing.get((told.namespace, told.pod))
            if told.act is Act.NODE and uid is not None:
                told = self._with_node(told, uid)
            elif UPCOMING in told.to:
                group = _group_of(told.to)
                told = msgspec.structs.replace(told, to="", group=group, due=self._due(group))
            yield told

    def _with_node(self, told: PodOutlook, uid: str) -> PodOutlook:
        """Where its node comes from, or why none comes."""
        why = self.seen.plan.rejected.get(uid)
        if why is not None:
            return msgspec.structs.replace(told, act=Act.NOTHING, because=f"no node group can help: {why}")
        group = next(iter(self.growing), "")
        return msgspec.structs.replace(told, group=group, due=self._due(group))

    def _pending(self) -> Iterator[PodOutlook]:
        for pod in self.look.pods:
            if is_unschedulable(pod):
                yield self._pending_pod(pod)

    def _pending_pod(self, pod: Pod) -> PodOutlook:
        meta = pod.metadata
        place, why = self.seen.there.places.get(meta.uid), self.seen.plan.rejected.get(meta.uid)
        act, group, due, to, because = Act.WAIT, "", "", "", ""
        if self.seen.young:
            because = "it has only come"
        elif place is not None and UPCOMING in place:
            act, group = Act.NODE, _group_of(place)
            due, because = self._due(group), "a node is on its way"
        elif place is not None:
            to, because = place, "there is room for it, the scheduler will see"
        elif why is not None:
            act, because = Act.NOTHING, f"no node group can help: {why}"
        elif any(pod.metadata.uid == helped.metadata.uid for helped in self.seen.plan.pods):
            act, group = Act.NODE, next(iter(self.growing), "")
            due = self._due(group)
        else:
            because = self._why_not_looked()
        return PodOutlook(
            namespace=meta.namespace, pod=meta.name, act=act, group=group, due=due, to=to, because=because
        )

    def _why_not_looked(self) -> str:
        if self.look.problem:
            return self.look.problem
        if not self.counts.healthy:
            return "too many nodes are not ready, so nothing is done"
        return "it does not count yet, or for nothing"

    # ------------------------------------------------------------------ nodes

    def _nodes(self) -> Iterator[NodeOutlook]:
        waiting: Mapping[str, Kept] = self.seen.going.waiting
        for one in self.seen.unneeded.candidates:
            name, reason = one.node.metadata.name, waiting.get(one.node.metadata.name)
            due = self.seen.going.due.get(name, self.moment.at)
            yield NodeOutlook(
                name=name,
                group=one.group.group.id,
                removed=self._at(max(due, self.moment.at)),
                reason=reason.reason if reason is not None else "",
                because=reason.text if reason is not None else "",
            )
        for name, kept in sorted(self.seen.unneeded.kept.items()):
            group = self.look.members.get(name, "")
            yield NodeOutlook(name=name, group=group, reason=kept.reason, because=kept.text)


def _group_of(place: str) -> str:
    """The group of a node that has yet to come, by the name that it has till then."""
    return place.partition(UPCOMING)[0].removeprefix(TEMPLATE)
