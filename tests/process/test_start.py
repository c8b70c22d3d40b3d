"""What a start loads before it answers."""

import subprocess
import sys
from pathlib import Path

START = """
import asyncio, sys
from pathlib import Path
from podfit.process.up import Cluster
from podfit.process.data.data_dir import DataDir
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions

def announce(text):
    if text.lstrip().startswith("api "):
        print(*sys.modules)

async def main():
    data = DataDir(Path(sys.argv[1]))
    api = ApiServerOptions(data=data, port=0, kubeconfig=data.root / "config")
    cluster = await Cluster.start(UpOptions(api=api, node=NodeKind.NONE), announce=announce)
    await cluster.stop(pods=False)

asyncio.run(main())
"""
LATER = {
    "podfit.api.structural.cel",
    "grpc",
    "google.protobuf",
    "re2",
    "aiohttp.web",
    "cyclopts",
    "rich",
    "tarfile",
    "podfit.apiserver.resources",
    "podfit.apiserver.http.openapi",
    "podfit.api.validation",
    "podfit.api.core.v1.pods.validation.pod",
    "podfit.apiserver.registry.strategies.strategy",
    "podfit.process.control.controllers",
    "podfit.process.control.scheduler",
    "podfit.process.node.cluster_node",
    "podfit.controllers",
    "podfit.scheduler",
    "podfit.kubelet",
}


def test_a_cluster_answers_before_it_loads_what_the_answer_does_not_need(tmp_path: Path) -> None:
    """A second start on a directory, with its certificates and roles there."""
    command = [sys.executable, "-c", START, str(tmp_path)]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2))
    assert "podfit.apiserver.registry.strategies.strategy" in first.stdout.split()
    assert not LATER & set(second.stdout.split())
