"""Explains a VPA's target step by step (percentile, margin, confidence, minimum) from its checkpoints. Loads NumPy."""

from collections.abc import Iterator

from msgspec.structs import replace

from podfit.answers.why_vpa import EstimateStep
from podfit.answers.why_vpa_next import SETTINGS
from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, VerticalPodAutoscalerCheckpoint
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.cluster_state import ClusterState, VpaKey
from podfit.decide.autoscaling.estimate import Estimates, steps
from podfit.vpa.workloads import NOTHING

KEY = VpaKey("", "vpa")
UNFINISHED = "none in the checkpoint: the peak of the interval under way (a day) counts, and is not written yet"


def estimate_steps(
    checkpoints: tuple[VerticalPodAutoscalerCheckpoint, ...], policy: PodResourcePolicy | None, now: float
) -> Iterator[EstimateStep]:
    """By the recommender's defaults, `now` in seconds since 1970. A checkpoint that cannot be read says nothing."""
    state = ClusterState(gates=SETTINGS.gates)
    state.set_vpa(KEY, NOTHING, policy)
    for checkpoint in checkpoints:
        own = replace(checkpoint.metadata, namespace=KEY.namespace)
        try:
            spec = replace(checkpoint.spec, vpa_object_name=KEY.name)
            state.restore(replace(checkpoint, metadata=own, spec=spec), now)
        except ValueError:
            continue
    members = state.members([KEY])
    for part, estimate in state.estimates(members):
        for row, (_, container) in enumerate(members.names[part]):
            yield from _of(container, estimate, row)


def _of(container: str, estimates: Estimates, row: int) -> Iterator[EstimateStep]:
    for step in steps(estimates, "cpu", "target", row):
        amount = str(Quantity.of_milli(step.value))
        yield EstimateStep(container=container, resource=CPU, step=step.name, value=amount, because=step.reason)
    for step in steps(estimates, "memory", "target", row):
        amount = str(Quantity.of_bytes(step.value))
        because = UNFINISHED if step.name == "percentile" and not step.value else step.reason
        yield EstimateStep(container=container, resource=MEMORY, step=step.name, value=amount, because=because)
