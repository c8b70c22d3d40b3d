"""What a burst ceiling is judged by: the checks of a resize to it, and a few of its own (docs/burst.md)."""

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, forbidden, invalid
from podfit.core.quantity import ZERO
from podfit.decide.forbidden import Forbidden
from podfit.decide.pod.burst_ceiling import BurstRange, at_ceiling, read_ranges
from podfit.decide.pod.qos import held_class
from podfit.decide.pod.requests import pod_limits
from podfit.decide.resize.node_support import changes_ceiling, concerns_node
from podfit.decide.resize.restart_policy import restarting

FIELD = f"metadata.annotations[{CEILING}]"


def ceiling_errors(new: Pod, old: Pod, gates: FeatureGates) -> list[FieldError]:
    """What is wrong with a ceiling that is set or changed; none of one that stays."""
    text = new.metadata.annotations.get(CEILING)
    if text is None or not changes_ceiling(new, old):
        return []
    try:
        ranges = read_ranges(text)
    except ValueError as error:
        return [invalid(FIELD, text[:200], str(error))]
    if new.spec.resources is not None:
        return [forbidden(FIELD, "pods with pod-level resources have no burst ceiling")]
    containers = {container.name: container for container in new.spec.containers}
    guaranteed = held_class(old, gates) == "Guaranteed"
    return [
        invalid(FIELD, name, problem)
        for name, between in ranges.items()
        if (problem := _problem(containers.get(name), between, guaranteed=guaranteed))
    ]


def _problem(container: Container | None, found: BurstRange, *, guaranteed: bool) -> str:
    if container is None:
        return "the pod has no such container"
    if restarts := restarting(container, tuple(found.ceiling)):
        return f"a change of {', '.join(restarts)} restarts it"
    own = container.resources
    for name, most in found.ceiling.items():
        if name not in own.limits:
            return f"it has no {name} limit"
        if most < own.limits[name]:
            return f"its {name} limit {own.limits[name]} is above the ceiling {most}"
        if not guaranteed and found.floor[name] < own.requests.get(name, ZERO):
            return f"the {name} floor {found.floor[name]} is below its request {own.requests[name]}"
    return ""


def check_ceiling(new: Pod, old: Pod, node: Node | None, gates: FeatureGates) -> Forbidden | None:
    """No ceiling is above what the node has for pods: its limits are not counted there, as its requests are."""
    raised = at_ceiling(new, gates)
    if node is None or raised is new or not concerns_node(new, old):
        return None
    wanted, room = pod_limits(raised, gates=gates), node.status.allocatable
    short = [name for name in ("cpu", "memory") if wanted.get(name, ZERO) > room.get(name, ZERO)]
    if not short:
        return None
    parts = (f"{name}, ceiling: {wanted[name]}, allocatable: {room.get(name, ZERO)}" for name in short)
    return Forbidden(f"node doesn't have enough for the burst ceiling: {'; '.join(parts)}", ("NodeCapacity",))
