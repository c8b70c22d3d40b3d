"""Predicts what podfit's updater does next for a VPA, by running its decision without writing."""

from collections.abc import Iterator
from datetime import datetime

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling.actions import ActionOutcome, Evict, Resize, Skip
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.update import UpdateSettings, View, run

SETTINGS = UpdateSettings(gates=Gates(cpu_startup_boost=True, in_place=True, per_vpa_config=True))
"""As in `podfit up`."""


def next_steps(
    vpa: VerticalPodAutoscaler, pods: tuple[Pod, ...], limit_ranges: tuple[LimitRange, ...], now: datetime
) -> Iterator[str]:
    """One pass: how many of these pods it disturbs at once is bounded, so more may follow in the next."""
    actions, last = run(View(vpa=vpa, pods=pods, configured={}, now=now, limit_ranges=limit_ranges), SETTINGS), None
    while True:
        try:
            action = next(actions) if last is None else actions.send(last)
        except StopIteration as end:
            yield from (f"leaves pods as they are. {said}" for said in end.value.conditions.values())
            return
        last = ActionOutcome.DONE
        name = action.pod.metadata.name
        match action:
            case Resize():
                amounts = ", ".join(
                    _amount(resource) for resource in action.resources if isinstance(resource.get("value"), str)
                )
                yield f"resizes {name} in place: {amounts}"
            case Evict():
                yield f"evicts {name}, as far as disruption budgets allow"
            case Skip():
                yield f"leaves {name}: its node can never give as much"


def _amount(operation: dict[str, object]) -> str:
    """`/spec/containers/0/resources/requests/cpu` as `cpu request 500m`."""
    *_, kind, resource = str(operation["path"]).split("/")
    return f"{resource} {kind.removesuffix('s')} {operation['value']}"
