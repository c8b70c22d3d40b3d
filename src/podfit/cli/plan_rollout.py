"""`podfit plan -f MANIFEST`: what `kubectl apply` of it would do to the pods of its workloads."""

from collections.abc import Sequence

from podfit.answers.facts.readable import readable_text
from podfit.answers.plan.result import Plan
from podfit.answers.plan.rollout import HELD, IN_PLACE, ROLLING, UNKNOWN, RolloutPlan
from podfit.cli import render

HOW = {IN_PLACE: "in place", ROLLING: "replaces pods", HELD: "nothing by itself", UNKNOWN: "not known"}


class ManifestPlan(Plan, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    rollouts: tuple[RolloutPlan, ...] = ()


def with_rollouts(plan: Plan, rollouts: Sequence[RolloutPlan]) -> ManifestPlan:
    """As one document."""
    fields = {name: getattr(plan, name) for name in plan.__struct_fields__}
    return ManifestPlan(**fields, rollouts=tuple(rollouts))


def show_rollout(rollout: RolloutPlan) -> None:
    """A line for the workload, and one for each pod of which there is more to say."""
    counts = ", ".join(f"{number} {fate}" for fate, number in rollout.counts.items())
    about = f": {readable_text(rollout.text)}" if rollout.text else ""
    render.say(f"kubectl apply, {rollout.target}: {HOW[rollout.how]}{about}{f'; {counts}' if counts else ''}")
    for pod in rollout.pods:
        if pod.text:
            render.say(f"  {pod.pod} {pod.fate}: {readable_text(pod.text)}")
