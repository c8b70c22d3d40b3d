"""What a start loads before it answers, and which packages it takes only a part of."""

import subprocess
import sys
from pathlib import Path

START = """
import asyncio, sys
from pathlib import Path
from podfit.process.up import Cluster
from podfit.process.layout import DataDir
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
    "cryptography",
    "joserfc",
    "grpc",
    "google.protobuf",
    "re2",
    "aiohttp.client",
    "aiohttp.connector",
    "aiohttp.web",
    "cyclopts",
    "rich",
    "tarfile",
    "podfit.apiserver.resources",
    "podfit.apiserver.http.openapi",
    "podfit.api.defaults",
    "podfit.api.validation",
    "podfit.api.core.v1.pods.validation.pod",
    "podfit.apiserver.registry.strategies",
    "podfit.process.controllers",
    "podfit.process.scheduler",
    "podfit.process.node",
    "podfit.controllers",
    "podfit.scheduler",
    "podfit.kubelet",
    "podfit.client.rest",
    "podfit.apiserver.extensions.backends",
    "podfit.apiserver.extensions.aggregation.remote",
    "podfit.apiserver.extensions.aggregation.neighbours",
    "podfit.apiserver.housekeeping.servers",
}


def test_a_cluster_answers_before_it_loads_what_the_answer_does_not_need(tmp_path: Path) -> None:
    """A second start on a directory, with its certificates and roles there."""
    command = [sys.executable, "-c", START, str(tmp_path)]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2))
    assert "cryptography" in first.stdout.split()
    assert not LATER & set(second.stdout.split())


def test_of_a_package_a_part_can_be_loaded_and_the_whole_later() -> None:
    script = (
        "import sys; from podfit.net.http_parser import StreamReader; print('aiohttp.client' in sys.modules);"
        "import aiohttp; print(aiohttp.StreamReader is StreamReader, aiohttp.ClientSession.__module__);"
        "from aiohttp import web; print(web.Server.__name__, hasattr(aiohttp, 'nonsense'), aiohttp.__version__[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "aiohttp.client", "Server", "False", "3"]


def test_a_package_that_somebody_loaded_stays_as_it_is() -> None:
    script = "import aiohttp; a = aiohttp.ClientSession; import podfit.net.http_parser; print(type(aiohttp).__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "module\n"
