"""`podfit.dev/scale: vertical-first`: pods grow in place before replicas are added, and shrink after replicas are gone.

    need = usage / target ─┬─ above the requests: a larger size, as far as nodes and VPA allow; then replicas
                           └─ below them: fewer replicas; at the least of them a smaller size

The size is asked for in an annotation of the HPA (`asked_size`), which the VPA's recommender recommends, and its
updater resizes the pods. Replicas wait while pods grow; for what does not begin within PATIENCE nobody waits.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import MetricSpec
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.aggregate import lasting_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Format, Quantity
from podfit.core.resources import MEMORY
from podfit.decide.autoscaling.horizontal.asked_size import Ask, asks, encoded, is_vertical_first, split
from podfit.decide.autoscaling.horizontal.conditions import stamp
from podfit.decide.autoscaling.horizontal.limits import down_window, tolerance_of
from podfit.decide.autoscaling.horizontal.metrics import Computed, Failure
from podfit.decide.autoscaling.horizontal.model import Memory, Need, Reading, Samples, View
from podfit.decide.autoscaling.horizontal.pods import as_granted, is_over, sort_pods
from podfit.decide.autoscaling.horizontal.vertical import shares
from podfit.decide.autoscaling.policies import (
    IN_PLACE,
    IN_PLACE_OR_RECREATE,
    acting_mode,
    controlled_resources,
    is_off,
    policy_of,
    recommended,
)
from podfit.decide.autoscaling.targets import by_age, scaled_by, target_of

PATIENCE = 180.0
"""Seconds: a pass of the recommender and one of the updater, each once a minute, and the resize."""
RETRY = 3600.0
"""Seconds after which a VPA that did not act is waited for again."""
_NEGLIGIBLE = 50
"""What is less than this part of a size is rounding."""
_MILLI = 10**6  # nano units


class Grown(msgspec.Struct, frozen=True):
    """What a pass makes of its metrics. `held` says that replicas wait; `text` is for a condition, empty where there is
    nothing to say; `annotation` is empty where it says it already."""

    found: tuple[Computed | Failure, ...]
    memory: Memory
    annotation: str = ""
    held: bool = False
    text: str = ""


class Step(msgspec.Struct, frozen=True):
    """What comes of one resource; `ask` is None where nothing was ever asked for."""

    ask: Ask | None
    held: bool = False
    text: str = ""


class Sizes(msgspec.Struct, frozen=True):
    """Thousandths of a pod, on average: what its VPA sizes, what it leaves alone, and the most that every pod can be
    sized to where it is. `weights` are those of the containers that are sized."""

    sized: int
    fixed: int
    most: int
    weights: Mapping[str, int]


def grown(
    view: View,
    metrics: Sequence[MetricSpec],
    readings: Sequence[Reading],
    found: Sequence[Computed | Failure],
    *,
    memory: Memory,
    least: int,
    now: float,
) -> Grown:
    """`least` replicas are the fewest that there may be."""
    if not is_vertical_first(view.autoscaler) or view.settings.upstream_compatible:
        return Grown(tuple(found), memory)
    before = asks(view.autoscaler)
    asked, results, needs, texts, held = dict(before), list(found), list[Need](), list[str](), False
    for place, (metric, reading, result) in enumerate(zip(metrics, readings, found, strict=True)):
        resource = shares(metric)
        if metric.resource is None or not resource or isinstance(result, Failure) or not isinstance(reading, Mapping):
            needs += [need for need in memory.needs if need.resource == resource]
            continue
        others = [other.replicas for other in (*found[:place], *found[place + 1 :]) if isinstance(other, Computed)]
        floor = max([least, *others])
        growing = _Growing(view, metric, reading, memory=memory, wanted=result.replicas, floor=floor, now=now)
        step, kept = growing.step(before.get(resource))
        needs += kept
        if step.ask is not None:
            asked[resource] = step.ask
        if step.held:
            results[place] = replace(result, replicas=view.replicas)
        held = held or step.held
        texts += [f"{resource}: {step.text}"] if step.text else []
    text = encoded(asked) if asked != before else ""
    return Grown(tuple(results), replace(memory, needs=tuple(needs)), text, held, "; ".join(texts))


def sizer(view: View, resource: str) -> VerticalPodAutoscaler | None:
    """The VPA that resizes the pods in place; of several the oldest."""
    names = [container.name for pod in view.pods[:1] for container in lasting_containers(pod.spec)]
    there = [
        vpa
        for vpa in view.vpas
        if target_of(vpa) == scaled_by(view.autoscaler)
        and acting_mode(vpa, upstream_compatible=False) in (IN_PLACE, IN_PLACE_OR_RECREATE)
        and any(_sizes(vpa, name, resource) for name in names)
    ]
    return min(there, key=by_age, default=None)


def _sizes(vpa: VerticalPodAutoscaler, container: str, resource: str) -> bool:
    policy = policy_of(vpa.spec.resource_policy, container)
    return not is_off(policy) and resource in controlled_resources(policy)


def sizes_of(pods: Sequence[Pod], vpa: VerticalPodAutoscaler, resource: str, view: View) -> Sizes | None:
    """None where no pod requests any of it of a container that the VPA sizes, or all of it as a whole."""
    sized, fixed, most, weights = list[int](), list[int](), list[int](), dict[str, int]()
    for pod in pods:
        amounts = dict(_requests(pod, resource))
        own = {name: milli for name, milli in amounts.items() if _sizes(vpa, name, resource)}
        if not sum(own.values()) or pod.spec.resources is not None:
            continue
        sized.append(sum(own.values()))
        fixed.append(sum(amounts.values()) - sized[-1])
        weights |= own
        room = view.room.get(pod.metadata.name)
        if room is not None:
            most.append(sized[-1] + room.get(resource, 0))
    if not sized:
        return None
    for name in weights:
        own_estimate = recommended(vpa.status.recommendation, name)
        if own_estimate is not None and resource in own_estimate.uncapped_target:
            weights[name] = own_estimate.uncapped_target[resource].milli()
    mean = sum(sized) // len(sized)
    return Sizes(mean, sum(fixed) // len(fixed), min(most, default=mean), weights)


def _requests(pod: Pod, resource: str) -> Iterator[tuple[str, int]]:
    """Thousandths by container, as they are granted."""
    for container in lasting_containers(as_granted(pod).spec):
        if resource in container.resources.requests:
            yield container.name, container.resources.requests[resource].milli()


class _Growing:
    """One metric in one pass: `wanted` are the replicas that it asks for by itself, below `floor` there are none."""

    def __init__(
        self, view: View, metric: MetricSpec, samples: Samples, *, memory: Memory, wanted: int, floor: int, now: float
    ) -> None:
        source = metric.resource
        self.view, self.samples, self.wanted, self.floor, self.now = view, samples, wanted, floor, now
        self.resource, self.memory = shares(metric), memory
        self.percent = (source.target.average_utilization if source is not None else None) or 100
        self.pods = [pod for pod in view.pods if not is_over(pod, view.settings)]
        self.groups = sort_pods(view.pods, samples, self.resource, view.settings, now)

    def step(self, before: Ask | None) -> tuple[Step, list[Need]]:
        vpa = sizer(self.view, self.resource)
        sizes = sizes_of(self.pods, vpa, self.resource, self.view) if vpa is not None else None
        more = self.wanted > self.view.replicas
        if vpa is None or sizes is None:
            text = "no VerticalPodAutoscaler resizes its containers in place, so replicas are added"
            return Step(before, text=text if more else ""), []
        needs = self._needs(sizes)
        if more:
            return self._up(before, vpa, sizes), needs
        if self.view.replicas <= self.floor and not self.groups.missing and not self.groups.unready:
            return self._down(before, vpa, sizes, max(need.milli for need in needs)), needs
        return Step(self._settled(before, sizes)), needs

    # ------------------------------------------------------------ what is needed

    @property
    def _count(self) -> int:
        return max(self.groups.ready + len(self.groups.unready) + len(self.groups.missing), 1)

    @property
    def _need(self) -> int:
        """What all pods ought to request together."""
        left_out = self.groups.ignored | self.groups.unready
        names = {pod.metadata.name for pod in self.pods} - left_out
        used = sum(sample.value for name, sample in self.samples.items() if name in names)
        return -(-used * 100 // self.percent)

    def _needs(self, sizes: Sizes) -> list[Need]:
        """The needs in the window in which replicas do not go, without those that a later one exceeds; what there is
        when an autoscaler is seen first, so that a new controller shrinks nothing at once."""
        oldest = self.now - down_window(self.view.autoscaler.spec, self.view.settings)
        new, known = self._need, [need for need in self.memory.needs if need.resource == self.resource]
        known = known or [Need(self.resource, self.now, (sizes.sized + sizes.fixed) * self._count)]
        kept = [need for need in known if need.time >= oldest and need.milli > new]
        return [*kept, Need(self.resource, self.now, new)]

    def _reach(self, total: int, vpa: VerticalPodAutoscaler, sizes: Sizes) -> int:
        """What of it the VPA's policy allows."""
        return sum(split(total, sizes.weights, self.resource, vpa.spec.resource_policy).values())

    # ------------------------------------------------------------ what is asked for

    @property
    def _at_most(self) -> bool:
        """No replica may be added: then pods ask for more than their nodes have room for. Their resizes wait, which is
        what makes room, moves a neighbour or brings a node."""
        return self.view.replicas >= self.view.autoscaler.spec.max_replicas

    def _up(self, before: Ask | None, vpa: VerticalPodAutoscaler, sizes: Sizes) -> Step:
        ought = -(-self._need // self._count) - sizes.fixed
        size = ought if self._at_most else min(ought, sizes.most)
        reach = self._reach(size, vpa, sizes) if size > 0 else 0
        if not _beyond(reach, sizes.sized):
            allowed = f"which is all that VerticalPodAutoscaler {vpa.metadata.name} allows"
            why = "since their nodes have no room for more" if _beyond(ought, size) else allowed
            so = "and no replica may be added" if self._at_most else "so replicas are added"
            text = f"pods stay at {self._amount(sizes.sized)}, {why}, {so}"
            return Step(self._settled(before, sizes), text=text)
        ask = self._outstanding(before, min(size, reach), sizes)
        way = f"from {self._amount(sizes.sized)} to {self._amount(reach)}"
        name, until = vpa.metadata.name, ask.since + PATIENCE
        if self._at_most:
            text = f"VerticalPodAutoscaler {name} is to grow pods {way}, also where that has to wait for room, as no"
            return Step(ask, text=f"{text} replica may be added")
        if self.now < until:
            text = f"VerticalPodAutoscaler {name} is to grow pods {way}; replicas wait for it until {stamp(until)}"
            return Step(ask, held=True, text=text)
        text = f"pods did not grow {way} by VerticalPodAutoscaler {name} within {PATIENCE:g} s, so replicas are added"
        return Step(ask, text=text)

    def _outstanding(self, before: Ask | None, size: int, sizes: Sizes) -> Ask:
        """What is asked for already stays while it is near."""
        fresh = Ask(size, sizes.sized, self.now)
        if before is None or not before.since or _beyond(sizes.sized, before.granted):
            return fresh
        if self.now - before.since >= RETRY:
            return fresh
        near = not _beyond(size, before.size) and not _beyond(before.size, size)
        return before if near else replace(before, size=size)

    def _down(self, before: Ask | None, vpa: VerticalPodAutoscaler, sizes: Sizes, need: int) -> Step:
        size = max(-(-need // self._count) - sizes.fixed, 1)
        reach = self._reach(size, vpa, sizes)
        little = size + sizes.fixed >= (sizes.sized + sizes.fixed) * (1 - tolerance_of(self.view).down)
        if little or not _beyond(sizes.sized, reach):
            return Step(self._settled(before, sizes))
        ask = Ask(size) if before is None or _differs(before.size, size) else Ask(before.size)
        way = f"from {self._amount(sizes.sized)} to {self._amount(reach)}"
        text = f"replicas are as few as they may be; VerticalPodAutoscaler {vpa.metadata.name} is to shrink pods {way}"
        return Step(ask, text=text)

    def _settled(self, before: Ask | None, sizes: Sizes) -> Ask | None:
        """Nothing more is needed. What is asked for stays while pods may yet grow to it; after that it is what they
        have, and that the VPA did not act is remembered."""
        if before is None or not before.since:
            return before
        if _beyond(sizes.sized, before.granted):
            return Ask(before.size)
        waited = self.now - before.since >= PATIENCE
        return Ask(sizes.sized, before.granted, before.since) if waited else before

    def _amount(self, milli: int) -> str:
        if self.resource == MEMORY:
            return str(Quantity.of(-(-milli // 1000), Format.BINARY_SI))
        return str(Quantity(milli * _MILLI))


def _beyond(size: int, other: int) -> bool:
    """Whether it is more, and not by rounding alone."""
    return size - other > other // _NEGLIGIBLE


def _differs(one: int, other: int) -> bool:
    return _beyond(one, other) or _beyond(other, one)
