"""`podfit vpa recommender` as a process beside `podfit apiserver`: it leads, writes, and ends in order."""

import asyncio
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.codec import convert
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.net.addresses import own_address
from podfit.net.tls import client_context
from podfit.net.wire import Request
from support.apiserver_processes import ApiProcess
from support.etcd import free_ports
from support.eventually import PATIENCE, eventually_async, logged
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


PATH = "/apis/recommender.podfit.dev/v1alpha1/namespaces/default/podrecommendations"
QUESTION = (
    b'{"apiVersion": "recommender.podfit.dev/v1alpha1", "kind": "PodRecommendation",'
    b' "spec": {"pod": {"spec": {"containers": [{"name": "app"}]}}}}'
)


async def asked(api: ApiProcess) -> dict[str, Any]:
    """The status of an answer, once there is one; by the API server, which checks the certificate."""
    client = api.client()

    async def answer() -> dict[str, Any] | str:
        try:
            told: dict[str, Any] = msgspec.json.decode(await client.request("POST", PATH, QUESTION))["status"]
        except ApiError as error:
            return str(error)
        return told

    answers = await eventually_async(
        answer, lambda told: isinstance(told, dict), within=SECONDS, what="the recommender answers"
    )
    await client.close()
    assert isinstance(answers, dict)
    return answers


async def status_of(api: ApiProcess, user: str = "") -> tuple[int, str]:
    """Of an administrator's question, or of a user's, whom the administrator impersonates."""
    client = api.client()
    headers = {"content-type": "application/json", **({"impersonate-user": user} if user else {})}
    answer = await client._transport.send(Request("POST", PATH, {}, headers, QUESTION))
    text = (await answer.read()).decode()
    await client.close()
    return answer.status, text


def direct(port: int, address: str, **headers: str) -> int:
    """What somebody on the network is told who comes without the API server."""
    request = urllib.request.Request(f"https://{address}:{port}{PATH}", QUESTION, headers, method="POST")
    try:
        with urllib.request.urlopen(request, context=client_context(verify=False), timeout=30 * PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_it_serves_its_api_to_who_may_ask_and_to_nobody_else(api: ApiProcess, tmp_path: Path) -> None:
    """Killed, and there again: the API server says so, and the new certificate is believed."""
    address, (port,) = own_address(), free_ports(1)
    asyncio.run(define(api))
    here = ("--api-bind-address", address, "--api-port", str(port), "--register-api-as", address)
    common = ("--kubeconfig", str(api.kubeconfig), "--secure-port", "0", "--no-leader-elect")
    command = (PODFIT, "vpa", "recommender", *common, *here)
    log = tmp_path / "recommender.log"
    for _ in range(2):
        with log.open("a") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            assert asyncio.run(asked(api))["message"].startswith("no VerticalPodAutoscaler"), log.read_text()
            code, text = asyncio.run(status_of(api, "jane"))
            assert (code, 'User \\"jane\\" cannot create' in text) == (403, True), text
            assert direct(port, address) == 401
            assert direct(port, address, **{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}) == 401
            assert direct(port, address, Authorization="Bearer none") == 401
        finally:
            process.kill()
            process.wait()
        assert asyncio.run(status_of(api))[0] == 503
    assert "Traceback" not in log.read_text()


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
        with urllib.request.urlopen(
            f"{server}/healthz", context=client_context(verify=False), timeout=30 * PATIENCE
        ) as answer:
            assert answer.status == 200
        assert asyncio.run(holder(api)) == identity
        why = "Cannot read targetRef. Reason: Deployment default/web does not exist"
        assert asyncio.run(told(api))["ConfigUnsupported"] == why
        process.terminate()
        assert process.wait(30 * PATIENCE) == 0, log.read_text()
        assert not asyncio.run(holder(api))
        assert "Traceback" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
