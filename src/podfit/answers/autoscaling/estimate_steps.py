"""Explains a VPA's target step by step (percentile, margin, minimum, cap) from status and checkpoints. Loads NumPy."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from podfit.answers.autoscaling.vpas import EstimateStep
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from podfit.client.workloads import NOTHING
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU
from podfit.decide.autoscaling.capping import capped_by, whole_core
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.estimate import EstimationStep, Resource, steps
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import recommended
from podfit.decide.autoscaling.tracked import VpaKey

KEY = VpaKey("", "vpa")
GATES = Gates(cpu_startup_boost=True, in_place=True, per_vpa_config=True)
"""Of the recommender in `podfit up`; others may have others, and then their numbers are worked out."""
RESOURCES: tuple[Resource, ...] = ("cpu", "memory")
Explained = Mapping[tuple[str, str], tuple[EstimateStep, ...]]
"""By container and resource."""


def estimate_steps(
    checkpoints: tuple[VerticalPodAutoscalerCheckpoint, ...], vpa: VerticalPodAutoscaler, now: float
) -> Explained:
    """The steps by the recommender's defaults, `now` in seconds since 1970. The last step of each is the target that
    the VPA has; where it has none, what is kept of it so far. A checkpoint that cannot be read says nothing."""
    state, found = ClusterState(gates=GATES), dict[tuple[str, str], tuple[EstimateStep, ...]]()
    state.set_vpa(KEY, NOTHING, vpa.spec.resource_policy)
    for checkpoint in checkpoints:
        own = replace(checkpoint.metadata, namespace=KEY.namespace)
        try:
            spec = replace(checkpoint.spec, vpa_object_name=KEY.name)
            state.restore(replace(checkpoint, metadata=own, spec=spec), now)
        except ValueError:
            continue
    members = state.members([KEY])
    for part, estimates in state.estimates(members):
        for row, (_, container) in enumerate(members.names[part]):
            for resource in RESOURCES:
                uncapped = _uncapped(vpa, container, resource)
                shown = None if uncapped is None else _number(resource, uncapped)
                whole = resource == CPU and whole_core(container, vpa.metadata.annotations)
                told = steps(estimates, resource, "target", row, None if whole else shown)
                made = [shown_step(container, resource, step) for step in told]
                made += _after(vpa, container, resource, whole=whole)
                found[container, resource] = tuple(made)
    recommendation = vpa.status.recommendation
    for sizes in recommendation.container_recommendations if recommendation else ():
        for resource in RESOURCES:
            found.setdefault(
                (sizes.container_name, resource), tuple(_after(vpa, sizes.container_name, resource, whole=False))
            )
    return found


def _after(vpa: VerticalPodAutoscaler, container: str, resource: str, *, whole: bool) -> Iterator[EstimateStep]:
    """What became of the estimate."""
    uncapped = _uncapped(vpa, container, resource)
    own = recommended(vpa.status.recommendation, container)
    if uncapped is None or own is None:
        return
    if whole:
        text = "rounded up to whole cores, as an annotation says"
        yield EstimateStep(container=container, resource=resource, step="whole", value=str(uncapped), because=text)
    target = own.target.get(resource)
    if target is not None and target != uncapped:
        said = capped_by(vpa, container, resource)
        yield EstimateStep(container=container, resource=resource, step="cap", value=str(target), because=said)


def _uncapped(vpa: VerticalPodAutoscaler, container: str, resource: str) -> Quantity | None:
    found = recommended(vpa.status.recommendation, container)
    return found.uncapped_target.get(resource) if found is not None else None


def shown_step(container: str, resource: str, step: EstimationStep) -> EstimateStep:
    amount = Quantity.of_milli(step.value) if resource == CPU else Quantity.of_bytes(step.value)
    return EstimateStep(container=container, resource=resource, step=step.name, value=str(amount), because=step.reason)


def _number(resource: str, amount: Quantity) -> int:
    return amount.milli() if resource == CPU else amount.value()
