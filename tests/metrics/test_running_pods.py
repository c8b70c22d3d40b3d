"""Beside others who follow all pods, the metrics-server tells of those that run."""

from pathlib import Path
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informers import Informers
from podfit.metrics.running_pods import RunningPods
from support.background import beside
from support.clock import FakeClock
from support.faulty_server import faulty_server

SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}


async def test_only_pods_that_run_are_told_of(tmp_path: Path) -> None:
    clock = FakeClock()
    async with faulty_server(tmp_path, Pod) as api:
        client = api.server.client
        informers = Informers(client, clock)
        pods = RunningPods(informers.of(Pod))
        async with beside(informers.run()):
            for name in ("a", "b"):
                await api.put(name, spec=SPEC)
            await clock.settle()
            assert pods.list() == []
            assert pods.get("a", "default") is None
            for phase, there in (("Running", ["a"]), ("Succeeded", [])):
                await client.patch(Pod, "a", "default", {"status": {"phase": phase}}, subresource="status")
                await clock.settle()
                assert [pod.metadata.name for pod in pods.list("default")] == there
                assert (pods.get("a", "default") is not None) is bool(there)
            assert pods.list("other") == []
