"""Policies of a VPA and of its containers, with their defaults."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import NamedTuple

from podfit.api.autoscaling_k8s.v1 import (
    ContainerResourcePolicy,
    GenericStartupBoost,
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)
from podfit.core.durations import parse_duration
from podfit.core.resources import CPU, MEMORY
from podfit.core.times import format_time, parse_time
from podfit.decide.autoscaling.flags import MemoryFlags, OomFlags, RecommenderFlags

OFF, INITIAL, RECREATE, AUTO = "Off", "Initial", "Recreate", "Auto"
IN_PLACE, IN_PLACE_OR_RECREATE = "InPlace", "InPlaceOrRecreate"
UPDATE_MODES = (AUTO, IN_PLACE, IN_PLACE_OR_RECREATE, INITIAL, OFF, RECREATE)
ACTIVE_MODES = (RECREATE, IN_PLACE_OR_RECREATE, IN_PLACE)
"""Those in which running pods are changed."""
EVERY_CONTAINER = "*"
_UNNAMED = ""
"""The name of no container: what holds for it holds for each that no entry names."""
REQUESTS_AND_LIMITS, REQUESTS_ONLY = "RequestsAndLimits", "RequestsOnly"
NOT_SAID = float("nan")
RESOURCES = (CPU, MEMORY)
"""What is recommended, in this order."""
LARGEST_SIZE = 20
DEFAULT_RECOMMENDER = "default"
CONTROLLED_VALUES = "podfit.dev/controlled-values"
"""The annotation of a VPA that says for each resource whether limits follow its requests."""
NO_ANNOTATIONS: Mapping[str, str] = {}
LONGEST_TEXT = 4096
"""Characters of an annotation that is read for every pod."""
LONGEST_WINDOW = 90 * 86_400.0
FOR_EVER = datetime.max.replace(tzinfo=UTC)
UPDATE_MODE, AS_UPSTREAM = "podfit.dev/update-mode", "upstream"
"""The annotation of a VPA, and its value, that keep mode Recreate from resizing in place."""
OBSERVATION_WINDOW = "podfit.dev/observation-window"
"""The annotation of a VPA that has it only observe for so long after it was made (AEP 9962)."""


def observes_until(vpa: VerticalPodAutoscaler) -> datetime | None:
    """When a new VPA begins to act; None for one that acts from the start. A window that cannot be read is none, which
    the webhook refuses; a VPA that was not stored yet does not act either.
    """
    window = observation_window(vpa.metadata.annotations)
    created = vpa.metadata.creation_timestamp
    if window is None or not window:
        return None
    return parse_time(created) + timedelta(seconds=window) if created else FOR_EVER


def observation_window(annotations: Mapping[str, str]) -> float | None:
    """Seconds, at most LONGEST_WINDOW; None where nothing is said, or nothing that can be read."""
    try:
        window = parse_duration(annotations[OBSERVATION_WINDOW])
    except (KeyError, ValueError):
        return None
    return window if 0 <= window <= LONGEST_WINDOW else None


def observes(vpa: VerticalPodAutoscaler, now: datetime) -> bool:
    """Whether nothing is done by it yet: no pod is evicted, resized, or made with another size."""
    until = observes_until(vpa)
    return until is not None and now < until


def observing_text(vpa: VerticalPodAutoscaler) -> str:
    """Until when, in words."""
    until = observes_until(vpa)
    when = "it is stored" if until is None or until is FOR_EVER else format_time(until)
    return f"the VPA only observes until {when} ({OBSERVATION_WINDOW})"


def update_mode(vpa: VerticalPodAutoscaler) -> str:
    """Recreate when it is not given, and for Auto, which is its older name (V-007)."""
    policy = vpa.spec.update_policy
    mode = (policy.update_mode if policy else None) or RECREATE
    return RECREATE if mode == AUTO else mode


def stored_mode(vpa: VerticalPodAutoscaler) -> str:
    """The mode as it is written, in metrics."""
    return (vpa.spec.update_policy.update_mode if vpa.spec.update_policy else None) or RECREATE


def size_log2(pods: int) -> int:
    """How large a VPA is, in metrics: the whole logarithm of how many pods it has, at most 20."""
    return min(pods.bit_length() - 1, LARGEST_SIZE) if pods else 0


def in_place_by_default(vpa: VerticalPodAutoscaler, *, upstream_compatible: bool) -> bool:
    """Whether the mode says Recreate, and pods are resized in place all the same."""
    as_upstream = upstream_compatible or vpa.metadata.annotations.get(UPDATE_MODE) == AS_UPSTREAM
    return update_mode(vpa) == RECREATE and not as_upstream


def acting_mode(vpa: VerticalPodAutoscaler, *, upstream_compatible: bool) -> str:
    """The mode in which running pods are changed."""
    default = in_place_by_default(vpa, upstream_compatible=upstream_compatible)
    return IN_PLACE_OR_RECREATE if default else update_mode(vpa)


def policy_of(policy: PodResourcePolicy | None, container: str) -> ContainerResourcePolicy | None:
    """The first entry of the container's name; else the last that is for every container."""
    if policy is None:
        return None
    entries = policy.container_policies
    named = next((entry for entry in entries if entry.container_name == container), None)
    return named or next((entry for entry in reversed(entries) if entry.container_name == EVERY_CONTAINER), None)


def is_off(policy: ContainerResourcePolicy | None) -> bool:
    """Whether a container is to be left alone."""
    return policy is not None and policy.mode == OFF


def controlled_resources(policy: ContainerResourcePolicy | None) -> tuple[str, ...]:
    return RESOURCES if policy is None or policy.controlled_resources is None else policy.controlled_resources


def sized_resources(policy: PodResourcePolicy | None) -> frozenset[str]:
    """The resources that are sized of at least one container: of one that an entry names, or of any other."""
    named = {entry.container_name for entry in (policy.container_policies if policy else ())}
    found = (policy_of(policy, name) for name in (named - {EVERY_CONTAINER}) | {_UNNAMED})
    return frozenset(name for entry in found if not is_off(entry) for name in controlled_resources(entry))


class Override(NamedTuple):
    """What a policy says of an estimate: percentiles of the target, as shares of 1, and the least that is allowed, in
    millicores and bytes. NaN where it says nothing.
    """

    target_cpu: float
    target_memory: float
    least_cpu: float
    least_memory: float


def override(policy: ContainerResourcePolicy | None, *, percentiles: bool) -> Override | None:
    """None when a policy says none of it. A minimum of zero is none."""
    if policy is None:
        return None
    shares = (policy.target_cpu_percentile, policy.target_memory_percentile) if percentiles else (None, None)
    cpu, memory = policy.min_allowed.get(CPU), policy.min_allowed.get(MEMORY)
    target_cpu, target_memory = (NOT_SAID if share is None else share.nano / 1e9 for share in shares)
    found = Override(
        target_cpu,
        target_memory,
        float(cpu.milli()) if cpu else NOT_SAID,
        float(memory.value()) if memory else NOT_SAID,
    )
    return None if all(map(isnan, found)) else found


def aggregation(policy: ContainerResourcePolicy | None, flags: RecommenderFlags) -> tuple[MemoryFlags, OomFlags]:
    """How memory is counted of a container: as the flags say where the policy does not."""
    memory, oom = flags.memory, flags.oom
    if policy is None:
        return memory, oom
    ratio, bump = policy.oom_bump_up_ratio, policy.oom_min_bump_up
    return (
        MemoryFlags(
            interval=float(policy.memory_aggregation_interval_seconds or memory.interval),
            count=policy.memory_aggregation_interval_count or memory.count,
        ),
        OomFlags(
            bump_up_ratio=oom.bump_up_ratio if ratio is None else ratio.milli() / 1000,
            min_bump_up_bytes=oom.min_bump_up_bytes if bump is None else bump.value(),
        ),
    )


def scaled_limits(
    policy: ContainerResourcePolicy | None, container: str, annotations: Mapping[str, str] = NO_ANNOTATIONS
) -> frozenset[str]:
    """The resources whose limits follow the requests: by the annotation of the VPA, else by the policy for both."""
    usual = REQUESTS_AND_LIMITS if policy is None else policy.controlled_values or REQUESTS_AND_LIMITS
    said = controlled_values(annotations) or {}
    values = {name: said.get((container, name)) or said.get((EVERY_CONTAINER, name)) or usual for name in RESOURCES}
    return frozenset(name for name, value in values.items() if value != REQUESTS_ONLY)


def controlled_values(annotations: Mapping[str, str]) -> Mapping[tuple[str, str], str] | None:
    """The values by container (or *) and resource, as CONTROLLED_VALUES says them; None for what cannot be read.

    `memory=RequestsOnly, app:cpu=RequestsAndLimits`
    """
    found = {}
    text = annotations.get(CONTROLLED_VALUES, "")
    if len(text) > LONGEST_TEXT:
        return None
    for part in filter(None, (part.strip() for part in text.split(","))):
        what, _, value = part.partition("=")
        container, colon, resource = what.rpartition(":")
        if resource not in RESOURCES or value not in (REQUESTS_ONLY, REQUESTS_AND_LIMITS) or (colon and not container):
            return None
        found[container or EVERY_CONTAINER, resource] = value
    return found


def boost_of(vpa: VerticalPodAutoscaler, container: str) -> GenericStartupBoost | None:
    """The startup boost of a container's CPU: its own, else the VPA's; one that does not name the CPU is none."""
    policy = policy_of(vpa.spec.resource_policy, container)
    if is_off(policy):
        return None
    own = policy.startup_boost if policy else None
    boost = own if own is not None else vpa.spec.startup_boost
    return boost.cpu if boost else None


def boosts(vpa: VerticalPodAutoscaler) -> bool:
    """Whether any container may be boosted."""
    policy = vpa.spec.resource_policy
    every = [
        vpa.spec.startup_boost,
        *(container_policy.startup_boost for container_policy in (policy.container_policies if policy else ())),
    ]
    return any(boost is not None and boost.cpu is not None for boost in every)


def names_of(recommendation: RecommendedPodResources | None) -> frozenset[str]:
    """The containers that something is recommended for."""
    found = recommendation.container_recommendations if recommendation else ()
    return frozenset(recommended.container_name for recommended in found)


def recommended(recommendation: RecommendedPodResources | None, container: str) -> RecommendedContainerResources | None:
    found = recommendation.container_recommendations if recommendation else ()
    return next((recommended for recommended in found if recommended.container_name == container), None)


def is_for(vpa: VerticalPodAutoscaler, recommender: str) -> bool:
    """Whether a recommender of this name serves the VPA: the default one also serves those that name none (V-045)."""
    named = [recommender.name for recommender in vpa.spec.recommenders]
    return recommender in named if named else recommender == DEFAULT_RECOMMENDER
