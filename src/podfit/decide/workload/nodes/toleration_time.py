"""How long a pod tolerates a node's NoExecute taints."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from podfit.api.core.v1.nodes.types import Taint
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import parse_time
from podfit.decide.placement.node_filters import tolerates
from podfit.decide.workload.nodes.health import NO_EXECUTE


def until(pod: Pod, taints: Sequence[Taint], now: datetime) -> datetime | None:
    """When it has to go: `now` or before at once, None never. The shortest of the times of what tolerates counts, from
    the first of the taints on."""
    executing = [taint for taint in taints if taint.effect == NO_EXECUTE]
    if not executing:
        return None
    tolerating = [
        [toleration for toleration in pod.spec.tolerations if tolerates(toleration, taint)] for taint in executing
    ]
    if not all(tolerating):
        return now
    bounded = [
        toleration.toleration_seconds
        for some in tolerating
        for toleration in some
        if toleration.toleration_seconds is not None
    ]
    if not bounded:
        return None
    begun = min((parse_time(taint.time_added) for taint in executing if taint.time_added), default=now)
    return begun + timedelta(seconds=max(0, min(bounded)))
