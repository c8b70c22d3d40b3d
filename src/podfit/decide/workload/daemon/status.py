"""The status of a daemon set."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet, DaemonSetStatus
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.daemon.nodes import suits
from podfit.decide.workload.daemon.steps import Version, oldest_first
from podfit.decide.workload.pods import is_available, is_ready


def wanted_on(daemons: DaemonSet, nodes: Sequence[Node]) -> int:
    return sum(suits(daemons, node)[0] for node in nodes)


def status_of(
    daemons: DaemonSet,
    nodes: Sequence[Node],
    pods: Mapping[str, Sequence[Pod]],
    version: Version,
    now: datetime,
    *,
    observed: bool,
) -> DaemonSetStatus:
    """`observed`: this generation has been acted on."""
    right = [node.metadata.name for node in nodes if suits(daemons, node)[0]]
    firsts = [oldest_first(pods[name])[0] for name in right if pods.get(name)]
    ready = [pod for pod in firsts if is_ready(pod)]
    available = sum(is_available(pod, daemons.spec.min_ready_seconds, now) for pod in ready)
    wrong = {node.metadata.name for node in nodes} - set(right)
    status = replace(
        daemons.status,
        current_number_scheduled=len(firsts),
        desired_number_scheduled=len(right),
        number_available=available,
        number_misscheduled=sum(bool(pods.get(name)) for name in wrong),
        number_ready=len(ready),
        number_unavailable=len(right) - available,
        updated_number_scheduled=sum(map(version.of, firsts)),
    )
    return replace(status, observed_generation=daemons.metadata.generation) if observed else status
