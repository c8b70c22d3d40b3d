"""How soon the recommender answers what a pod would get, at 50 questions a second through the API server.

    python bench/pod_recommendations.py [--seconds 10] [--workloads 50] [--standalone]

`podfit up` with a simulated node, a Deployment and a VPA each; the questions come from this process over HTTPS, evenly,
whatever the answers take. With --standalone the recommender is a process of its own behind aggregation. The goal is a
p99 of 20 ms; listing VPAs once, in turns with them, is what a client could do instead.
"""

import argparse
import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from measure import PODFIT, data_directory, judge, machine, percentile, table

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.kubeconfig import load
from podfit.client.rest import APPLY_PATCH, Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.net.addresses import own_address

A_SECOND, GOAL = 50, 20.0
GROUP_VERSION = "recommender.podfit.dev/v1alpha1"
PATH = f"/apis/{GROUP_VERSION}/namespaces/default/podrecommendations"


def deployment(name: str) -> Deployment:
    labels, requests = {"app": name}, {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "app", "image": "busybox:1.36", "resources": {"requests": requests}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return codec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Deployment)


async def prepared(client: Client, workloads: int) -> list[bytes]:
    """Bodies of questions, one for each workload, when the recommender answers them."""
    for number in range(workloads):
        name = f"web-{number}"
        await client.create(deployment(name))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        vpa = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name}}
        body = json.dumps(vpa | {"spec": {"targetRef": target, "updatePolicy": {"updateMode": "Off"}}}).encode()
        await client.patch(VPAS, name, "default", body, content_type=APPLY_PATCH, field_manager="bench", force=True)
    while len(pods := (await client.list(Pod, "default")).items) < workloads:
        await asyncio.sleep(0.2)
    bodies = [
        json.dumps({"apiVersion": GROUP_VERSION, "kind": "PodRecommendation", "spec": {"pod": codec.to_dict(pod)}})
        for pod in pods
    ]
    while not await answers(client, bodies[-1].encode()):
        await asyncio.sleep(0.5)
    return [body.encode() for body in bodies]


async def answers(client: Client, body: bytes) -> bool:
    """Whether it knows the container, which takes a pass."""
    try:
        told = json.loads(await client.request("POST", PATH, body))
    except ApiError:
        return False
    return bool(told["status"]["containers"] and told["status"]["containers"][0].get("target"))


async def timed(client: Client, method: str, path: str, body: bytes = b"") -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await client.request(method, path, body)
    return 1000 * (time.perf_counter() - began)


async def measured(client: Client, bodies: list[bytes], seconds: float) -> tuple[list[float], list[float]]:
    questions, lists = [], []
    began = time.monotonic()
    for number in range(round(seconds * A_SECOND)):
        await asyncio.sleep(max(0.0, began + number / A_SECOND - time.monotonic()))
        questions.append(asyncio.create_task(timed(client, "POST", PATH, bodies[number % len(bodies)])))
        if number % A_SECOND == 0:
            path = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
            lists.append(asyncio.create_task(timed(client, "GET", path)))
    return list(await asyncio.gather(*questions)), list(await asyncio.gather(*lists))


async def run(data: Path, workloads: int, seconds: float) -> None:
    client = load([data / "bench.kubeconfig"]).client()
    try:
        bodies = await prepared(client, workloads)
        questions, lists = await measured(client, bodies, seconds)
    finally:
        await client.close()
    rows = []
    for name, times, goal in (("podrecommendations", questions, GOAL), ("list of VPAs", lists, 0.0)):
        p99 = percentile(times, 99)
        told = (f"{goal:g} ms", judge(p99, goal)) if goal else ("", "")
        rows.append((name, str(len(times)), f"{percentile(times, 50):.1f} ms", f"{p99:.1f} ms", *told))
    table([("question", "asked", "p50", "p99", "goal", ""), *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--workloads", type=int, default=50)
    parser.add_argument("--standalone", action="store_true")
    options = parser.parse_args()
    print(machine())
    with data_directory() as data:
        kubeconfig = data / "bench.kubeconfig"
        own = ("--no-vpa",) if options.standalone else ()
        command = [PODFIT, "up", "--data", str(data), "--port", "0", "--kubeconfig", str(kubeconfig), *own]
        subprocess.run([*command, "--node", "simulated", "--detach"], stdout=subprocess.DEVNULL, check=True)
        try:
            with recommender(kubeconfig) if options.standalone else nullcontext():
                asyncio.run(run(data, options.workloads, options.seconds))
        finally:
            subprocess.run([PODFIT, "down", "--data", str(data)], stdout=subprocess.DEVNULL, check=True)


@contextmanager
def recommender(kubeconfig: Path) -> Iterator[None]:
    """A process beside the cluster, which has its definitions."""
    crds = Path(__file__).parents[1] / "deploy" / "vpa" / "crds.yaml"
    subprocess.run(["kubectl", "--kubeconfig", kubeconfig, "apply", "-f", crds], stdout=subprocess.DEVNULL, check=True)
    address = own_address()
    here = ("--api-bind-address", address, "--api-port", "0", "--register-api-as", address)
    common = ("--kubeconfig", str(kubeconfig), "--secure-port", "0", "--no-leader-elect")
    process = subprocess.Popen([PODFIT, "vpa", "recommender", *common, *here], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()
