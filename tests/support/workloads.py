"""Pods of a pytest cluster that end, as their programs would."""

from collections.abc import Iterable

from podfit.api.core.v1.pods.types import Pod
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.testing.cluster import Cluster


def end_containers(cluster: Cluster, pods: Iterable[Pod], code: int) -> None:
    """Every container of these pods that runs ends with this exit code."""
    ended = {
        status.container_id.partition("://")[2]
        for pod in pods
        for status in pod.status.container_statuses
        if status.state.running is not None
    }

    async def end() -> None:
        for node in cluster._composed.nodes:
            runtime = node.backend.runtime
            assert isinstance(runtime, SimulatedRuntime)
            for container in await runtime.list_containers():
                if container.id in ended:
                    runtime.end(container.id, code)

    cluster.run(end())
