"""Recommendations by slice and for pods as a whole: how a VPA keeps them, and what of it is told to one pod.

A VPA's status recommends what holds for all pods, container by container, as ever. Beside it, in the same write, a
condition of the type `podfit.dev/Recommendations` has the others, so that it takes no right but to write the status:

    {"aggregation": "pod", "slices": {"web-0": {"app": {"cpu": ["25m", "20m", "1"]}}}}

that is target, lower and upper bound, and the target without a policy where that is another. Slice "" is all pods,
container "" the pod as a whole. At most MOST_SLICES and LONGEST characters are kept: pods of other slices have what
holds for all, and `more` says how many slices those are.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
)
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList, Struct, always
from podfit.api.meta.codec import decode, encode
from podfit.core.quantity import Quantity
from podfit.core.times import format_time
from podfit.decide.autoscaling.conditions import said_of_slices, with_condition
from podfit.decide.autoscaling.container_view import WHOLE
from podfit.decide.autoscaling.scope import (
    AGGREGATION,
    EVERY_SLICE,
    POD_POLICY,
    WORKLOAD,
    PodFacts,
    Rules,
    resource_policy,
    slice_of,
)
from podfit.decide.autoscaling.status import Estimated, known

RECOMMENDATIONS, REASON = "podfit.dev/Recommendations", "BySlice"
"""The condition, and its reason."""
MOST_SLICES = 500
LONGEST = 128 << 10
"""Characters."""
NEAR = 0.1
"""The share by which a bound moves before it is written anew: in its first day each pass moves it a little."""
_OURS = (AGGREGATION, POD_POLICY)
Amounts: TypeAlias = dict[str, tuple[Quantity, ...]]
"""By resource: target, lower bound, upper bound and, where it is another, the target without a policy."""
Slices: TypeAlias = Mapping[str, RecommendedPodResources]


class _Kept(Struct):
    aggregation: str = always(default="")
    slices: dict[str, dict[str, Amounts]] = always(default={})
    more: int = 0


class Stored(msgspec.Struct, frozen=True):
    """What is stored by slice; `more` is how many have no sizes of their own."""

    slices: Slices = msgspec.field(default_factory=dict)
    more: int = 0

    @property
    def names(self) -> list[str]:
        return [name for name in self.slices if name != EVERY_SLICE]


NOTHING = Stored()


def stored(vpa: VerticalPodAutoscaler) -> Stored:
    """What is kept of a VPA; nothing of another aggregation than it asks for now, and nothing that cannot be read."""
    said = (one.message for one in vpa.status.conditions if one.type == RECOMMENDATIONS and one.status == "True")
    text = next(said, None)
    rules = Rules.of(vpa.metadata.annotations)
    if text is None or not rules.any:
        return NOTHING
    aggregation, found = _read(text)
    return found if aggregation == str(rules.scope) else NOTHING


@lru_cache(maxsize=16)
def _read(text: str) -> tuple[str, Stored]:
    if len(text) > LONGEST:
        return "", NOTHING
    try:
        kept = decode(text.encode(), _Kept)
        slices = {name: _recommended(containers) for name, containers in kept.slices.items()}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "", NOTHING
    return (kept.aggregation, Stored(slices, kept.more)) if len(slices) <= MOST_SLICES + 1 else ("", NOTHING)


def _recommended(containers: Mapping[str, Amounts]) -> RecommendedPodResources:
    """Raises ValueError for too few amounts."""
    found = []
    for name, amounts in containers.items():
        if any(len(every) < 3 for every in amounts.values()):
            raise ValueError("target, lower and upper bound are needed")
        target, lower, upper = ({what: every[place] for what, every in amounts.items()} for place in range(3))
        uncapped = {what: every[3] if len(every) > 3 else every[0] for what, every in amounts.items()}
        found.append(
            RecommendedContainerResources(
                container_name=name, target=target, lower_bound=lower, upper_bound=upper, uncapped_target=uncapped
            )
        )
    return RecommendedPodResources(container_recommendations=tuple(found))


def with_slices(
    status: VerticalPodAutoscalerStatus, vpa: VerticalPodAutoscaler, wanted: Stored, now: datetime
) -> VerticalPodAutoscalerStatus:
    """The status with what is recommended by slice, and a condition while some slices have no sizes of their own; `vpa`
    has the status of before."""
    kept, more = _text(vpa, wanted)
    status = with_condition(status, RECOMMENDATIONS, REASON, kept, format_time(now))
    return said_of_slices(status, len(wanted.names) + wanted.more - more, more, now)


def _text(vpa: VerticalPodAutoscaler, wanted: Stored) -> tuple[str, int]:
    """What is kept, and how many slices are not. What moved little stays as it is."""
    rules, before = Rules.of(vpa.metadata.annotations), stored(vpa).slices
    if not rules.any or not wanted.slices:
        return "", wanted.more
    slices = {name: _amounts(_settled(before.get(name), after)) for name, after in wanted.slices.items()}
    parts = {name: len(encode({name: containers})) for name, containers in slices.items()}
    total, more = sum(parts.values()) + len(encode(_Kept(aggregation=str(rules.scope), more=10**9))), wanted.more
    for name in reversed(parts):
        if total <= LONGEST:
            break
        total -= parts[name]
        del slices[name]
        more += 1
    return encode(_Kept(aggregation=str(rules.scope), slices=slices, more=more)).decode(), more


def _amounts(found: RecommendedPodResources) -> dict[str, Amounts]:
    return {one.container_name: dict(_of(one)) for one in found.container_recommendations}


def _of(one: RecommendedContainerResources) -> Iterator[tuple[str, tuple[Quantity, ...]]]:
    for name, target in one.target.items():
        uncapped = one.uncapped_target.get(name, target)
        more = (uncapped,) if uncapped != target else ()
        yield name, (target, one.lower_bound.get(name, target), one.upper_bound.get(name, target), *more)


def _settled(before: RecommendedPodResources | None, after: RecommendedPodResources) -> RecommendedPodResources:
    """The recommendation with the bounds of before where target and bounds are near."""
    earlier = {one.container_name: one for one in before.container_recommendations} if before is not None else {}
    return RecommendedPodResources(
        container_recommendations=tuple(
            _steady(earlier.get(one.container_name), one) for one in after.container_recommendations
        )
    )


def _steady(
    before: RecommendedContainerResources | None, after: RecommendedContainerResources
) -> RecommendedContainerResources:
    if before is None or before.target != after.target or before.uncapped_target != after.uncapped_target:
        return after
    pairs = ((before.lower_bound, after.lower_bound), (before.upper_bound, after.upper_bound))
    near = all(
        name in old and abs(new[name].nano - old[name].nano) <= NEAR * old[name].nano
        for old, new in pairs
        for name in new
    )
    return before if near else after


def recommended_by_slice(
    vpa: VerticalPodAutoscaler, found: Mapping[str, Estimated], left: int, most: ResourceList, alike: frozenset[str]
) -> Stored:
    """What is to be kept, from new estimates. As of the status: what has no samples keeps what was said before, within
    the policy and `most`. Of resources in `alike`, which an HPA sizes or scales on, no slice has sizes of its own.
    """
    before, policy = stored(vpa).slices, resource_policy(vpa)
    slices = {}
    for name, estimated in found.items():
        new = known(before.get(name, RecommendedPodResources()), estimated, policy, most)
        every = (_without(one, alike) for one in new.container_recommendations)
        kept = tuple(one for one in every if one.target)
        if kept:
            slices[name] = RecommendedPodResources(container_recommendations=kept)
    return Stored(slices, left)


def _without(one: RecommendedContainerResources, names: frozenset[str]) -> RecommendedContainerResources:
    if not names:
        return one

    def rest(amounts: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name not in names}

    return replace(
        one,
        target=rest(one.target),
        lower_bound=rest(one.lower_bound),
        upper_bound=rest(one.upper_bound),
        uncapped_target=rest(one.uncapped_target),
    )


# ---------------------------------------------------------------- one pod


def told_to(vpa: VerticalPodAutoscaler, pod: Pod) -> VerticalPodAutoscaler:
    """The VPA as it is for one pod: its status recommends what its slice has, else what holds for all pods; where it
    sizes pods as a whole, WHOLE alone. Told once: a VPA of that kind stays what it is.
    """
    annotations = vpa.metadata.annotations
    rules = Rules.of(annotations)
    if not rules.any:
        return vpa
    slices, own = stored(vpa).slices, slice_for(vpa, pod)
    status = vpa.status.recommendation if rules.whole is None else None
    layers = (status, slices.get(EVERY_SLICE), slices.get(own) if own != EVERY_SLICE else None)
    every = dict[str, RecommendedContainerResources]()
    for layer in layers:
        for one in layer.container_recommendations if layer is not None else ():
            if (one.container_name == WHOLE) == (rules.whole is not None):
                every[one.container_name] = _over(every.get(one.container_name), one)
    found = RecommendedPodResources(container_recommendations=tuple(every.values())) if every else None
    plain = {name: text for name, text in annotations.items() if name not in _OURS}
    return replace(
        vpa,
        metadata=replace(vpa.metadata, annotations=plain),
        spec=replace(vpa.spec, resource_policy=resource_policy(vpa)),
        status=replace(vpa.status, recommendation=found),
    )


def _over(
    below: RecommendedContainerResources | None, above: RecommendedContainerResources
) -> RecommendedContainerResources:
    """Resource by resource."""
    if below is None:
        return above
    return replace(
        above,
        target={**below.target, **above.target},
        lower_bound={**below.lower_bound, **above.lower_bound},
        upper_bound={**below.upper_bound, **above.upper_bound},
        uncapped_target={**below.uncapped_target, **above.uncapped_target},
    )


def differs_by_pod(vpa: VerticalPodAutoscaler) -> bool:
    """Whether two pods of it may be told different sizes."""
    return Rules.of(vpa.metadata.annotations).scope != WORKLOAD


def slice_for(vpa: VerticalPodAutoscaler, pod: Pod) -> str:
    """The slice that a pod belongs to, which may have no sizes of its own; EVERY_SLICE for none."""
    return slice_of(Rules.of(vpa.metadata.annotations).scope, PodFacts.of(pod))


def slice_told(vpa: VerticalPodAutoscaler, pod: Pod) -> str:
    """Which sizes a pod is told, in words; empty for those that hold for all pods."""
    rules = Rules.of(vpa.metadata.annotations)
    said = [f"as a whole ({POD_POLICY})"] if rules.whole is not None else []
    if differs_by_pod(vpa):
        own = slice_for(vpa, pod)
        if own != EVERY_SLICE and own in stored(vpa).slices:
            said.append(f"by slice {own} ({AGGREGATION}: {rules.scope})")
        else:
            why = f"slice {own} has no sizes of its own yet" if own != EVERY_SLICE else "it is of no slice"
            said.append(f"as all pods, since {why} ({AGGREGATION}: {rules.scope})")
    return ", ".join(said)
