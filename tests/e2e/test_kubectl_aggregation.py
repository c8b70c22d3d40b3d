"""The real kubectl with a group that another component serves: `top`, `api-resources` and `get apiservices`."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta.codec import convert
from podfit.client import kubeconfig_edit
from podfit.net.addresses import LOOPBACK
from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import Handler
from podfit.process.access import admin_access
from podfit.process.certificates import serving
from support.eventually import PATIENCE
from support.metrics_backend import GROUP, metrics
from support.server import Server, running_server

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-apply")]


def services(service: ServiceReference) -> Handler | None:
    return metrics if service.name == "metrics-server" else None


@dataclass(frozen=True)
class Kubectl:
    server: Server
    config: Path

    async def __call__(self, *arguments: str) -> str:
        kubectl = shutil.which("kubectl")
        assert kubectl
        where = ("--kubeconfig", str(self.config), "--cache-dir", str(self.config.parent / "cache"))
        process = await asyncio.create_subprocess_exec(
            kubectl, *where, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(30 * PATIENCE):
            out, _ = await process.communicate()
        return out.decode()


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    clock = SystemClock()
    authority = Authority.load(tmp_path / "pki", clock=clock)
    async with running_server(tmp_path, clock=clock, services=services) as server:
        https = HttpsServer(server.api.handler, server_context(serving(authority)), clients=authority.certificate)
        address = f"https://{LOOPBACK}:{await https.listen(LOOPBACK, 0)}"
        await server.api.publish(address)
        config = tmp_path / "kubeconfig"
        config.write_bytes(kubeconfig_edit.standalone("c", admin_access(authority, address)))
        try:
            yield Kubectl(server, config)
        finally:
            await https.close(deadline=1.0)


async def test_top_asks_the_component_that_is_registered(kubectl: Kubectl) -> None:
    assert "Metrics API not available" in await kubectl("top", "pod")
    spec = {
        "group": GROUP,
        "version": "v1beta1",
        "service": {"namespace": "kube-system", "name": "metrics-server"},
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    await kubectl.server.client.create(convert({"metadata": {"name": f"v1beta1.{GROUP}"}, "spec": spec}, APIService))
    waited = await kubectl("wait", "apiservice", f"v1beta1.{GROUP}", "--for=condition=Available", "--timeout=20s")
    assert "condition met" in waited
    rows = [line.split() for line in (await kubectl("top", "pod", "--no-headers")).splitlines()]
    assert rows == [["web", "123m", "64Mi"]]
    listed = await kubectl("api-resources", "--api-group", GROUP, "--no-headers")
    assert [line.split()[-1] for line in listed.splitlines()] == ["NodeMetrics", "PodMetrics"]
    shown = {line.split()[0]: line.split()[1:3] for line in (await kubectl("get", "apiservices")).splitlines()}
    assert shown[f"v1beta1.{GROUP}"] == ["kube-system/metrics-server", "True"]
    assert shown["v1.apps"] == ["Local", "True"]
