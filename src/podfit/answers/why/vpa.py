"""Explains a VPA's recommendation: the samples behind it, what capped it, and why pods differ from it.

    uncapped ──minAllowed, maxAllowed──▶ target ──mode, bounds, the updater──▶ requests of pods

How the recommender came to `uncapped` (percentiles, margins, confidence) is in its memory and nowhere in the cluster.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from podfit.answers.autoscaling.updater import ForetoldApi, NextPass, next_pass, read_views
from podfit.answers.autoscaling.vpas import EstimateStep, last_written, read_vpa, selector_of
from podfit.answers.facts.ages import Age
from podfit.answers.facts.kinds import LIMIT_RANGES, NODES, PODS, QUOTAS
from podfit.answers.facts.pod_state import RESOURCES, granted
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.updater import RunningUpdater, read_updater
from podfit.answers.facts.workloads import WorkloadReader
from podfit.answers.why.vpa_notes import notes, target_named, wide_limits
from podfit.api.autoscaling_k8s.v1 import (
    RecommendedContainerResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCondition,
)
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.client.places import makes_places
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.client.vpa_kinds import CHECKPOINTS, VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.autoscaling.capping import capped_by
from podfit.decide.autoscaling.container_view import WHOLE
from podfit.decide.autoscaling.limit_range_capping import for_pod
from podfit.decide.autoscaling.nodes_and_autoscalers import largest
from podfit.decide.autoscaling.policies import controlled_resources, is_off, policy_of, recommended, stored_mode
from podfit.decide.autoscaling.priority import is_above, is_below
from podfit.decide.autoscaling.scope import EVERY_SLICE
from podfit.decide.autoscaling.slices import RECOMMENDATIONS, slice_for, slice_told, stored, told_to
from podfit.decide.autoscaling.update import View
from podfit.net.system import SystemClock

MODES = {
    "Off": "recommends only: pods keep their requests",
    "Initial": "new pods get it, running ones keep their requests",
    "Recreate": "pods outside the bounds are resized in place by podfit's updater, evicted by upstream's",
    "Auto": "pods outside the bounds are resized in place by podfit's updater, evicted by upstream's",
    "InPlaceOrRecreate": "pods outside the bounds are resized in place, or evicted where that does not work",
    "InPlace": "pods outside the bounds are resized in place, never evicted",
}
POD_AS_A_WHOLE = "(pod)"
"""As no container is named."""
BELOW, ABOVE, WITHIN = "below the bounds", "above the bounds", "within the bounds"
T = TypeVar("T")


class EstimateSteps(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One number. `capped` says what made the target differ from what was seen."""

    container: str
    resource: str
    uncapped: str = ""
    lower: str = ""
    target: str = ""
    upper: str = ""
    capped: str = ""


class OffTarget(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod's request that is not the target: where it stands, and why it has not changed."""

    pod: str
    container: str
    resource: str
    request: str
    target: str
    stands: str
    why: str


class SliceChain(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One number of a slice of the pods. `slice` is empty for all pods, `container` for the pod as a whole; `pods` are
    how many of it run.
    """

    slice: str
    container: str
    resource: str
    lower: str
    target: str
    upper: str
    pods: int


class VpaWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`age` in seconds since its recommender last wrote; `conditions` are those that are true."""

    vpa: str
    namespace: str
    target: str
    mode: str
    means: str
    updated: str = ""
    age: int | None = None
    chains: tuple[EstimateSteps, ...] = ()
    steps: tuple[EstimateStep, ...] = ()
    slices: tuple[SliceChain, ...] = ()
    pods: int = 0
    stands: tuple[OffTarget, ...] = ()
    next: tuple[str, ...] = ()
    updater: str = ""
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether there is a number and every pod is where it lets pods be."""
        return bool(self.chains) and all(stand.stands == WITHIN for stand in self.stands)


class VpaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` are those of its target that run, None when they could not be found; `unread` says why. `nodes` are empty
    where they may not be read. `checkpoints` are its own. `view` is what the updater would see of it.
    """

    age: Age
    vpa: VerticalPodAutoscaler
    pods: tuple[Pod, ...] | None = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    nodes: Mapping[str, Node] = msgspec.field(default_factory=dict)
    updater: RunningUpdater = RunningUpdater()
    view: View | None = None
    unread: tuple[str, ...] = ()
    checkpoints: tuple[VerticalPodAutoscalerCheckpoint, ...] = ()


async def read_facts(client: Client, name: str, namespace: str, clock: Clock | None = None) -> VpaFacts:
    """Raises ApiError for the VPA itself."""
    clock = clock or SystemClock()
    vpa = await read_vpa(client, name, namespace)
    reader, unread = Reader(client, namespace), list[str]()
    reading = WorkloadReader(client, namespace, unread.append)
    updater = await read_updater(client, clock)
    pods = await _pods(client, reading, vpa, unread)
    limit_ranges = await _listed(client, LIMIT_RANGES, namespace, unread, f"LimitRanges of {namespace}")
    quotas = await _listed(client, QUOTAS, namespace, unread, f"ResourceQuotas of {namespace}")
    nodes = await _listed(client, NODES, "", unread, "nodes, so that it is not foretold what theirs refuse")
    try:
        every = (await client.list(CHECKPOINTS, namespace)).items
    except ApiError:  # another's recommender may keep none: then how its numbers came about is not known
        every = ()
    own = tuple(checkpoint for checkpoint in every if checkpoint.spec.vpa_object_name == name)
    vpas = await _beside(client, vpa, updater, unread)
    places = await makes_places(client, clock)
    views = (
        await read_views(reading, vpas, pods, limit_ranges, clock.now(), places_first=places)
        if pods is not None
        else {}
    )
    return VpaFacts(
        age=await reader.age(),
        vpa=vpa,
        pods=None if pods is None else tuple(pod for pod in pods if pod.status.phase == "Running"),
        limit_ranges=limit_ranges,
        quotas=quotas,
        nodes={node.metadata.name: node for node in nodes},
        updater=updater,
        view=views.get(name),
        unread=tuple(unread),
        checkpoints=own,
    )


async def _pods(
    client: Client, reading: WorkloadReader, vpa: VerticalPodAutoscaler, unread: list[str]
) -> tuple[Pod, ...] | None:
    """Those that its target selects."""
    targets = await reading.targets((), (vpa.spec.target_ref,))
    selector = await selector_of(targets, reading, vpa, unread.append)
    if selector is None:
        return None
    try:
        found = (await client.list(PODS, vpa.metadata.namespace)).items
    except ApiError as error:
        unread.append(f"its pods: {error.message}")
        return None
    return tuple(pod for pod in found if selector.matches(pod.metadata.labels))


async def _listed(client: Client, kind: Resource[T], namespace: str, unread: list[str], what: str) -> tuple[T, ...]:
    """What may not be read is told to `unread`, and taken for absent."""
    try:
        return (await client.list(kind, namespace)).items
    except ApiError as error:
        unread.append(f"{what}: {error.message}")
        return ()


async def _beside(
    client: Client, vpa: VerticalPodAutoscaler, updater: RunningUpdater, unread: list[str]
) -> tuple[VerticalPodAutoscaler, ...]:
    """Those that the updater sees beside a VPA, itself among them; one that changes nothing is alone."""
    looks_at = updater.settings.looks_at
    if not looks_at(vpa):
        return (vpa,)
    namespace = vpa.metadata.namespace
    every = await _listed(client, VPAS, namespace, unread, f"other VPAs of {namespace}")
    return (vpa, *(other for other in every if looks_at(other) and other.metadata.name != vpa.metadata.name))


def foretold(facts: VpaFacts) -> NextPass:
    """What the updater's next pass makes of its pods."""
    settings = facts.updater.settings
    if facts.view is None or facts.updater.idle or not settings.works_in(facts.vpa.metadata.namespace):
        return NextPass()
    knows_nodes = bool(facts.nodes)  # whoever may read one may read all
    api = ForetoldApi(facts.age, facts.limit_ranges, facts.quotas, facts.nodes, lambda _: knows_nodes)
    return next_pass(facts.view, settings.rules, api)


def why_vpa(facts: VpaFacts, now: datetime, steps: tuple[EstimateStep, ...] = ()) -> VpaWhy:
    """`steps` are those of its targets, from its checkpoints."""
    vpa, coming, mode, updated = facts.vpa, foretold(facts), stored_mode(facts.vpa), last_written(facts.vpa)
    found = vpa.status.recommendation.container_recommendations if vpa.status.recommendation else ()
    chains = tuple(chain for target in found for chain in _chains(target, vpa))
    return VpaWhy(
        vpa=vpa.metadata.name,
        namespace=vpa.metadata.namespace,
        target=target_named(vpa),
        mode=mode,
        means=MODES.get(mode, "a mode that is not known here"),
        updated=updated,
        age=int((now - parse_time(updated)).total_seconds()) if updated else None,
        chains=chains,
        steps=steps,
        slices=tuple(_slices(vpa, facts.pods or ())),
        next=coming.steps,
        updater=facts.updater.name,
        pods=len(facts.pods or ()),
        stands=tuple(stand for pod in facts.pods or () for stand in _stands(facts, coming, pod)),
        conditions=tuple(
            _told(condition)
            for condition in vpa.status.conditions
            if condition.status == "True" and condition.type != RECOMMENDATIONS
        ),
        notes=(
            *notes(vpa, facts.pods, facts.age),
            *wide_limits(vpa, facts.pods or (), facts.limit_ranges, largest(facts.nodes.values())),
            *filter(None, (facts.updater.note if coming.verdicts and facts.updater.settings.looks_at(vpa) else "",)),
            *(f"not read: {line}" for line in facts.unread),
        ),
    )


def _chains(target: RecommendedContainerResources, vpa: VerticalPodAutoscaler) -> Iterator[EstimateSteps]:
    for resource in RESOURCES:
        if resource in target.target:
            yield EstimateSteps(
                container=target.container_name,
                resource=resource,
                uncapped=_text(target.uncapped_target, resource),
                lower=_text(target.lower_bound, resource),
                target=_text(target.target, resource),
                upper=_text(target.upper_bound, resource),
                capped=capped_by(vpa, target.container_name, resource),
            )


def _stands(facts: VpaFacts, coming: NextPass, pod: Pod) -> Iterator[OffTarget]:
    """Where the pod stands by what the node has granted: an updater that resizes has written its target into the spec
    at once."""
    spec, vpa = granted(pod, facts.age).spec, told_to(facts.vpa, pod)
    told, annotations = vpa.status.recommendation, vpa.metadata.annotations
    processed = for_pod(pod, told, vpa.spec.resource_policy, facts.limit_ranges, annotations)
    own = [(container.name, container.resources) for container in all_containers(spec)]
    for name, resources in (*own, (WHOLE, spec.resources or ResourceRequirements())):
        found, moved = recommended(told, name), recommended(processed.recommendation, name)
        if found is None or (moved is None and recommended(told, WHOLE) is not None):
            continue  # beside a size of the pod as a whole those of its containers do not count
        for resource in RESOURCES:
            target, request = found.target.get(resource), resources.requests.get(resource)
            if target is None or target == request:
                continue
            yield OffTarget(
                pod=pod.metadata.name,
                container=name or POD_AS_A_WHOLE,
                resource=resource,
                request=str(request) if request is not None else "",
                target=str(target),
                stands=_where(request, moved or found, resource),
                why=_reason(facts, coming, pod, name, resource, processed.notes),
            )


def _slices(vpa: VerticalPodAutoscaler, pods: Sequence[Pod]) -> Iterator[SliceChain]:
    of_slice = Counter(slice_for(vpa, pod) for pod in pods)
    for name, recommendation in stored(vpa).slices.items():
        for one in recommendation.container_recommendations:
            for resource in RESOURCES:
                if resource in one.target:
                    yield SliceChain(
                        slice=name,
                        container=one.container_name or POD_AS_A_WHOLE,
                        resource=resource,
                        lower=_text(one.lower_bound, resource),
                        target=_text(one.target, resource),
                        upper=_text(one.upper_bound, resource),
                        pods=of_slice[name] if name != EVERY_SLICE else len(pods),
                    )


def _where(request: Quantity | None, bounds: RecommendedContainerResources, resource: str) -> str:
    if is_below(request, bounds, resource):
        return BELOW
    return ABOVE if is_above(request, bounds, resource) else WITHIN


def _reason(
    facts: VpaFacts, coming: NextPass, pod: Pod, container: str, resource: str, capped: Mapping[str, tuple[str, ...]]
) -> str:
    """What the updater's own decision makes of the pod, and what keeps this resource of it from the target."""
    if facts.updater.idle:
        return f"the updater does nothing: {facts.updater.idle}"
    if not facts.updater.settings.works_in(facts.vpa.metadata.namespace):
        return f"the updater does not work in namespace {facts.vpa.metadata.namespace}"
    if facts.view is None or pod.metadata.uid not in coming.verdicts:
        return "its topmost controller is not what this VPA names, or an older VPA names it too"
    vpa = told_to(facts.vpa, pod)
    policy = policy_of(vpa.spec.resource_policy, container)
    reasons = [coming.reason(pod.metadata.uid)]
    if how := slice_told(facts.vpa, pod):
        reasons.append(f"it is sized {how}")
    reasons += [note for note in capped.get(container, ()) if note.startswith(f"{resource} ")]
    if policy is not None and is_off(policy):
        reasons.append(f'containerPolicies has mode Off for "{policy.container_name}"')
    if resource not in controlled_resources(policy):
        reasons.append(f"controlledResources does not name {resource}")
    return "; ".join(reasons)


def _told(condition: VerticalPodAutoscalerCondition) -> str:
    text = ": ".join(filter(None, (condition.reason, condition.message)))
    return f"{condition.type}{f' ({text})' if text else ''}"


def _text(amounts: ResourceList, name: str) -> str:
    return str(amounts[name]) if name in amounts else ""
