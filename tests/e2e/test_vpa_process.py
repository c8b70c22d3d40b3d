"""`podfit vpa recommender` as a process beside `podfit apiserver`: it leads, writes, and ends in order."""

import asyncio
import subprocess
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.codec import convert
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.net.tls import client_context
from support.apiserver_processes import ApiProcess
from support.eventually import eventually_async, logged
from support.up import PODFIT

DEFINITIONS = (files("podfit.api") / "manifests" / "verticalpodautoscalers.yaml").read_text()
SECONDS = 60.0


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiProcess]:
    made = ApiProcess(tmp_path / "api", "admin")
    made.start()
    made.await_ready()
    yield made
    made.stop()


async def define(api: ApiProcess) -> None:
    client = api.client()
    for document in yaml.safe_load_all(DEFINITIONS):
        await client.create(convert(document, CustomResourceDefinition))
    spec = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    vpa = convert({"metadata": {"name": "web", "namespace": "default"}, "spec": spec}, VerticalPodAutoscaler)

    async def served() -> bool:
        """A moment passes before a new kind is."""
        try:
            await client.create_in(VPAS, vpa)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    await eventually_async(served, within=SECONDS, what="the new kind is served")
    await client.close()


async def told(api: ApiProcess) -> dict[str, str]:
    """The messages of the VPA's conditions, once it has any."""
    client = api.client()
    vpa = await eventually_async(
        lambda: client.get(VPAS, "web", "default"),
        lambda vpa: vpa.status.conditions,
        within=SECONDS,
        what="the VPA has conditions",
    )
    await client.close()
    return {condition.type: condition.message for condition in vpa.status.conditions}


async def holder(api: ApiProcess) -> str | None:
    client = api.client()
    lease = await client.get(Lease, "vpa-recommender-lease", "kube-system")
    await client.close()
    return lease.spec.holder_identity


def test_it_leads_writes_and_frees_its_lease(api: ApiProcess, tmp_path: Path) -> None:
    asyncio.run(define(api))
    log = tmp_path / "recommender.log"
    command = (
        PODFIT,
        "vpa",
        "recommender",
        "--kubeconfig",
        str(api.kubeconfig),
        "--secure-port",
        "0",
        "--recommender-interval",
        "1s",
    )
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        identity = logged(log, process, "  leads ", within=SECONDS).split()[-1]
        server = logged(log, process, "  serves ", within=SECONDS).split()[1]
        with urllib.request.urlopen(f"{server}/healthz", context=client_context(verify=False), timeout=30) as answer:
            assert answer.status == 200
        assert asyncio.run(holder(api)) == identity
        why = "Cannot read targetRef. Reason: Deployment default/web does not exist"
        assert asyncio.run(told(api))["ConfigUnsupported"] == why
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
        assert not asyncio.run(holder(api))
        assert "Traceback" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
