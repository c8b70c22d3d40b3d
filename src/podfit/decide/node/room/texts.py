"""What is told of room that is made, by whoever makes it: the events of the pods that wait and of those that give."""

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.decide.node.room.plan import RoomPlan
from podfit.decide.node.room.shrinkable import Shrink

MAKING, GAVE_ROOM, REFUSED = "MakingRoom", "GaveRoom", "ShrinkRefused"
"""Reasons of events: on the pod that waits, on one that gives, and on the pod that waits when one cannot."""


def intent(made: RoomPlan) -> str:
    parts = [f"{full_name(shrink.pod)} gives {amounts(shrink.given)}" for shrink in made.shrinks]
    parts += [f"{full_name(victim)} is evicted" for victim in made.victims]
    return f"Resize lacks {amounts(made.missing)}: {', '.join(parts)}"


def gift(change: Shrink, waiting: Pod) -> str:
    before = {container.name: container.resources.requests for container in change.pod.spec.containers}
    steps = [
        f"{container} {name} {before[container][name]} to {resources.requests[name]}"
        for container, resources in change.containers.items()
        for name in change.given
        if resources.requests[name] != before[container][name]
    ]
    return f"Shrunk to make room for the resize of {important(waiting)}: {', '.join(steps)}"


def refused(change: Shrink, message: str) -> str:
    """`message` is the API server's."""
    return f"{full_name(change.pod)} cannot give room: {message}"


def important(pod: Pod) -> str:
    return f"{full_name(pod)} (priority {pod.spec.priority or 0})"


def full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def amounts(resources: ResourceList) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in resources.items())
