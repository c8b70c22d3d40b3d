"""Validation of VPA objects beyond their CRD's schema, as the admission webhook does it (V-004 to V-008).

Fields behind a feature gate stay editable with the gate off when the stored object has them. Unlike upstream's, a VPA
without `targetRef` is refused here too.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import ContainerResourcePolicy, PodUpdatePolicy, StartupBoost, VerticalPodAutoscaler
from podfit.core.fields import FieldError, forbidden, go_value, invalid, required, too_many, unsupported
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import (
    AUTO,
    CONTROLLED_VALUES,
    EVERY_CONTAINER,
    IN_PLACE,
    OBSERVATION_WINDOW,
    OFF,
    RECREATE,
    REQUESTS_AND_LIMITS,
    RESOURCES,
    UPDATE_MODES,
    controlled_values,
    observation_window,
)
from podfit.decide.autoscaling.scope import AGGREGATION, POD_POLICY, UnreadablePolicyError, pod_policy, scope_of

MOST_POLICIES = 1000
"""They are gone through for every container; upstream has no bound."""
CONTAINER_MODES = ("Auto", "Off")
FACTOR, QUANTITY = "Factor", "Quantity"
NEEDS_PER_VPA_CONFIG = "not supported when feature flag PerVPAConfig is disabled"
REPLACES_AUTO = tuple(mode for mode in UPDATE_MODES if mode != AUTO)


class Allowed(msgspec.Struct, frozen=True):
    """What may be used: a gate is on, or the stored object already uses it."""

    in_place: bool
    per_vpa_config: bool
    startup_boost: bool
    resources: frozenset[str]

    @staticmethod
    def by(gates: Gates, old: VerticalPodAutoscaler | None) -> "Allowed":
        policies = _policies(old) if old else ()
        update = old.spec.update_policy if old else None
        configured = any(
            value is not None
            for policy in policies
            for value in (
                policy.oom_bump_up_ratio,
                policy.oom_min_bump_up,
                policy.memory_aggregation_interval_seconds,
                policy.memory_aggregation_interval_count,
                policy.target_cpu_percentile,
                policy.target_memory_percentile,
            )
        )
        boosted = old is not None and old.spec.startup_boost is not None and old.spec.startup_boost.cpu is not None
        return Allowed(
            in_place=gates.in_place or (update is not None and update.update_mode == IN_PLACE),
            per_vpa_config=gates.per_vpa_config
            or configured
            or (update is not None and update.evict_after_oom_seconds is not None),
            startup_boost=gates.cpu_startup_boost
            or boosted
            or any(policy.startup_boost is not None for policy in policies),
            resources=frozenset(name for policy in policies for name in policy.controlled_resources or ()),
        )


def validate(vpa: VerticalPodAutoscaler, old: VerticalPodAutoscaler | None, gates: Gates) -> tuple[FieldError, ...]:
    """What is wrong; `old` is the stored object of an update, None on creation."""
    return tuple(_errors(vpa, Allowed.by(gates, old), creates=old is None))


def warnings(vpa: VerticalPodAutoscaler, old: VerticalPodAutoscaler | None) -> tuple[str, ...]:
    """What the client is told of an object that is taken."""
    return tuple(_warnings(vpa, Allowed.by(Gates(), old)))


def default_patch(vpa: VerticalPodAutoscaler) -> tuple[dict[str, Any], ...]:
    """The operations of a JSON patch that write down the mode that holds when none is given (V-006)."""
    if vpa.spec.update_policy is not None:
        return ()
    return ({"op": "add", "path": "/spec/updatePolicy", "value": {"updateMode": RECREATE}},)


def _policies(vpa: VerticalPodAutoscaler) -> tuple[ContainerResourcePolicy, ...]:
    return vpa.spec.resource_policy.container_policies if vpa.spec.resource_policy else ()


def _errors(vpa: VerticalPodAutoscaler, allowed: Allowed, *, creates: bool) -> Iterator[FieldError]:
    spec = vpa.spec
    if spec.target_ref is None and creates:
        yield required("spec.targetRef", "the workload whose pods are scaled")
    window = vpa.metadata.annotations.get(OBSERVATION_WINDOW)
    if window is not None and observation_window(vpa.metadata.annotations) is None:
        where = f"metadata.annotations[{OBSERVATION_WINDOW}]"
        yield invalid(where, window, "must be a duration of at most 2160h, such as 24h")
    if controlled_values(vpa.metadata.annotations) is None:
        where, text = f"metadata.annotations[{CONTROLLED_VALUES}]", vpa.metadata.annotations[CONTROLLED_VALUES]
        yield invalid(where, text[:100], "must be like memory=RequestsOnly, app:cpu=RequestsAndLimits")
    yield from _scope_errors(vpa, allowed)
    if spec.update_policy is not None:
        yield from _update_errors(spec.update_policy, allowed)
    if len(_policies(vpa)) > MOST_POLICIES:
        yield too_many("spec.resourcePolicy.containerPolicies", len(_policies(vpa)), MOST_POLICIES)
        return
    for index, policy in enumerate(_policies(vpa)):
        yield from _policy_errors(policy, f"spec.resourcePolicy.containerPolicies[{index}]", allowed)
    if spec.startup_boost is not None:
        yield from _boost_errors(spec.startup_boost, "spec.startupBoost", allowed)
    if len(spec.recommenders) > 1:
        yield too_many("spec.recommenders", len(spec.recommenders), 1)


def _scope_errors(vpa: VerticalPodAutoscaler, allowed: Allowed) -> Iterator[FieldError]:
    """What annotations say of slices, and of pods as a whole."""
    annotations = vpa.metadata.annotations
    if scope_of(annotations) is None:
        text = annotations[AGGREGATION][:100]
        yield invalid(f"metadata.annotations[{AGGREGATION}]", text, "must be workload, pod, node or label=KEY")
    where = f"metadata.annotations[{POD_POLICY}]"
    try:
        policy = pod_policy(annotations)
    except UnreadablePolicyError as error:
        yield invalid(where, annotations[POD_POLICY][:100], str(error))
        return
    if policy is None:
        return
    yield from _policy_errors(replace(policy, container_name=EVERY_CONTAINER), where, allowed)
    if _policies(vpa):
        yield forbidden(where, "a VPA sizes pods as a whole or their containers: there are containerPolicies")
    if vpa.spec.startup_boost is not None:
        yield forbidden(where, "there is no startupBoost of pods as a whole")


def _update_errors(policy: PodUpdatePolicy, allowed: Allowed) -> Iterator[FieldError]:
    path, mode = "spec.updatePolicy", policy.update_mode
    if mode is None:
        yield required(f"{path}.updateMode", "updateMode is required if UpdatePolicy is used")
    elif mode not in UPDATE_MODES:
        yield unsupported(f"{path}.updateMode", mode, UPDATE_MODES)
    elif mode == IN_PLACE and not allowed.in_place:
        yield forbidden(f"{path}.updateMode", _gated(f"UpdateMode {IN_PLACE}", "InPlace"))
    if policy.min_replicas is not None and policy.min_replicas <= 0:
        yield invalid(f"{path}.minReplicas", policy.min_replicas, "minReplicas has to be positive")
    yield from _least(f"{path}.evictAfterOOMSeconds", policy.evict_after_oom_seconds, 1, allowed)


def _policy_errors(policy: ContainerResourcePolicy, path: str, allowed: Allowed) -> Iterator[FieldError]:  # noqa: C901  (upstream's list of rules)
    if not policy.container_name:
        yield required(f"{path}.containerName")
    if policy.mode is not None and policy.mode not in CONTAINER_MODES:
        yield unsupported(f"{path}.mode", policy.mode, CONTAINER_MODES)
    for name, least in policy.min_allowed.items():
        yield from _resolution(f"{path}.minAllowed[{name}]", name, least)
        most = policy.max_allowed.get(name)
        if most is not None and most < least:
            yield invalid(f"{path}.maxAllowed[{name}]", most, f'max resource for {name} is lower than min of "{least}"')
    for name, most in policy.max_allowed.items():
        yield from _resolution(f"{path}.maxAllowed[{name}]", name, most)
    if policy.mode == OFF and policy.controlled_values == REQUESTS_AND_LIMITS:
        text = "controlledValues shouldn't be specified if container scaling mode is off"
        yield forbidden(f"{path}.controlledValues", text)
    for index, name in enumerate(policy.controlled_resources or ()):
        if name not in RESOURCES and name not in allowed.resources:
            yield unsupported(f"{path}.controlledResources[{index}]", name, RESOURCES)
    ratio, bump = policy.oom_bump_up_ratio, policy.oom_min_bump_up
    yield from _least(f"{path}.oomBumpUpRatio", None if ratio is None else ratio.milli() / 1000, 1.0, allowed)
    yield from _least(f"{path}.oomMinBumpUp", None if bump is None else bump.value(), 0, allowed)
    for field, number in (
        ("Seconds", policy.memory_aggregation_interval_seconds),
        ("Count", policy.memory_aggregation_interval_count),
    ):
        yield from _least(f"{path}.memoryAggregationInterval{field}", number, 1, allowed)
    yield from _share(f"{path}.targetCPUPercentile", policy.target_cpu_percentile, allowed)
    yield from _share(f"{path}.targetMemoryPercentile", policy.target_memory_percentile, allowed)
    if policy.startup_boost is not None:
        yield from _boost_errors(policy.startup_boost, f"{path}.startupBoost", allowed)


def _least(path: str, value: float | None, least: float, allowed: Allowed) -> Iterator[FieldError]:
    """A number that only the gate PerVPAConfig allows."""
    if value is None:
        return
    if not allowed.per_vpa_config:
        yield forbidden(path, NEEDS_PER_VPA_CONFIG)
    elif value < least:
        yield invalid(path, value, f"must be greater than or equal to {least}")


def _share(path: str, share: Quantity | None, allowed: Allowed) -> Iterator[FieldError]:
    if share is None:
        return
    if not allowed.per_vpa_config:
        yield forbidden(path, NEEDS_PER_VPA_CONFIG)
    elif not 0 < share.nano <= 10**9:
        yield invalid(path, str(share), "must be greater than 0 and at most 1")


def _boost_errors(boost: StartupBoost, path: str, allowed: Allowed) -> Iterator[FieldError]:
    if not allowed.startup_boost:
        yield forbidden(path, _gated("startupBoost", "CPUStartupBoost"))
        return
    cpu, path = boost.cpu, f"{path}.cpu"
    if cpu is None:
        return
    if not cpu.type:
        yield required(f"{path}.type", f"must be either {FACTOR} or {QUANTITY}")
    elif cpu.type == FACTOR and cpu.factor is None:
        yield required(f"{path}.factor", "required when type is Factor")
    elif cpu.type == FACTOR and cpu.factor is not None and cpu.factor < 1:
        yield invalid(f"{path}.factor", cpu.factor, "must be >= 1 for type Factor")
    elif cpu.type == QUANTITY and cpu.quantity is None:
        yield required(f"{path}.quantity", "required when type is Quantity")
    elif cpu.type == QUANTITY and cpu.quantity is not None:
        yield from _resolution(f"{path}.quantity", CPU, cpu.quantity)
    elif cpu.type not in (FACTOR, QUANTITY):
        yield unsupported(f"{path}.type", cpu.type, (FACTOR, QUANTITY))


def _gated(what: str, gate: str) -> str:
    return f"in order to use {what}, you must enable feature gate {gate} in the admission-controller args"


def _resolution(path: str, name: str, amount: Quantity) -> Iterator[FieldError]:
    """Amounts that a container's resources can hold."""
    if name == CPU and amount.rounded_to_milli() != amount:
        yield invalid(path, amount, "must be a whole number of milli CPUs")
    elif name == MEMORY and not amount.is_integer():
        yield invalid(path, amount, "must be a whole number of bytes")


def _warnings(vpa: VerticalPodAutoscaler, allowed: Allowed) -> Iterator[str]:
    if vpa.spec.update_policy is not None and vpa.spec.update_policy.update_mode == AUTO:
        yield (
            f'spec.updatePolicy: "Auto" mode is deprecated and will be removed in a future API version. Use explicit '
            f"update modes like: [{' '.join(REPLACES_AUTO)}]. See https://github.com/kubernetes/autoscaler/issues/8424 "
            "for more details."
        )
    for index, policy in enumerate(_policies(vpa)):
        for at, name in enumerate(policy.controlled_resources or ()):
            if name not in RESOURCES and name in allowed.resources:
                yield (
                    f"spec.resourcePolicy.containerPolicies[{index}].controlledResources[{at}]: unsupported value "
                    f"{go_value(name)} is allowed only because it is present in the existing VPA object; supported "
                    f"values: {', '.join(map(go_value, RESOURCES))}"
                )
