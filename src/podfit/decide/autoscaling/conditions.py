"""Conditions of a VPA that are there while they are true."""

from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerCondition, VerticalPodAutoscalerStatus


def with_condition(
    status: VerticalPodAutoscalerStatus, name: str, reason: str, message: str, now: str
) -> VerticalPodAutoscalerStatus:
    """With a condition that is true, or without it when there is no message. Its time stays as long as it is true."""
    kept = [condition for condition in status.conditions if condition.type != name]
    before = next((condition for condition in status.conditions if condition.type == name), None)
    if message:
        since = before.last_transition_time if before is not None and before.status == "True" else now
        said = VerticalPodAutoscalerCondition(
            type=name, status="True", last_transition_time=since, reason=reason, message=message
        )
        kept.append(said)
    return replace(status, conditions=tuple(sorted(kept, key=lambda condition: condition.type)))
