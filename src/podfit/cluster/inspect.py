"""What runs on a data directory, asked of the API itself."""

from collections import Counter

import msgspec

from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.client.kubeconfig import load
from podfit.cluster.layout import DataDir
from podfit.cluster.process import UpState, running
from podfit.core.errors import ApiError


class NodeReport(msgspec.Struct, frozen=True):
    name: str
    kind: str
    detail: str
    ready: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`running` false leaves everything below `data` empty."""

    running: bool
    data: str
    ready: bool = False
    version: str = ""
    pid: int = 0
    started: str = ""
    server: str = ""
    kubeconfig: str = ""
    nodes: tuple[NodeReport, ...] = ()
    pods: dict[str, int] = {}


async def inspect(data: DataDir) -> Report:
    state = running(data)
    if state is None:
        return Report(running=False, data=str(data.root))
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    client = load([data.kubeconfig]).client()
    try:
        await client.request("GET", "/readyz")
        nodes, pods = (await client.list(Node)).items, (await client.list(Pod)).items
        ready = True
    except (ApiError, ConnectionError):
        ready = False
    finally:
        await client.close()
    return _report(data, state, ready, nodes, pods)


def _report(data: DataDir, state: UpState, ready: bool, nodes: tuple[Node, ...], pods: tuple[Pod, ...]) -> Report:
    holds = {node.metadata.name: _is_ready(node) for node in nodes}
    reports = tuple(NodeReport(each.name, each.kind, each.detail, holds.get(each.name, False)) for each in state.nodes)
    return Report(
        running=True, data=str(data.root), ready=ready, version=state.version, pid=state.pid, started=state.started,
        server=state.server, kubeconfig=str(data.kubeconfig), nodes=reports,
        pods=dict(Counter(pod.status.phase for pod in pods)),
    )  # fmt: skip


def _is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
