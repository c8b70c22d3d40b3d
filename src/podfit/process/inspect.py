"""Inspects a running cluster by its data directory and its API (`podfit status`)."""

from collections import Counter
from pathlib import Path

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.client.kubeconfig import load
from podfit.core.errors import ApiError
from podfit.decide.node.simulated import is_played
from podfit.process.data.data_dir import DataDir
from podfit.process.data.other_clusters import others
from podfit.process.data.running_process import UpState, read_state, running
from podfit.process.node.leftovers import Traces

FIELDS = ("metadata.name", "spec.nodeName")  # by which a node reads what is its own


class NodeReport(msgspec.Struct, frozen=True):
    name: str
    kind: str
    detail: str
    ready: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`running` false leaves all from `ready` to `pods` empty. `crashed` says which cluster has ended there without
    being stopped, `left` what of it still runs. `played` are Nodes that somebody else made and this process simulates,
    as Ready or NotReady. `others` are data directories on which clusters run, too.
    """

    running: bool
    data: str
    ready: bool = False
    version: str = ""
    pid: int = 0
    started: str = ""
    server: str = ""
    kubeconfig: str = ""
    nodes: tuple[NodeReport, ...] = ()
    played: dict[str, int] = {}
    pods: dict[str, int] = {}
    crashed: str = ""
    left: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


async def inspect(data: DataDir) -> Report:
    state = running(data)
    if state is None:
        return _ended(data)
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    own_node, own_pods = (f"{field}={state.joined}" if state.joined else "" for field in FIELDS)
    client = load([Path(state.kubeconfig) if state.joined else data.kubeconfig]).client()
    try:
        await client.request("GET", "/readyz")
        nodes = (await client.list(Node, fields=own_node)).items
        pods = (await client.list(Pod, fields=own_pods)).items
        ready = True
    except (ApiError, ConnectionError):
        ready = False
    finally:
        await client.close()
    return _report(data, state, ready, nodes, pods)


def _ended(data: DataDir) -> Report:
    """Nothing runs; what was there last may not have been stopped."""
    last = read_state(data)
    said = f"podfit (pid {last.pid}, started {last.started}) ended without being stopped" if last else ""
    return Report(
        running=False, data=str(data.root), crashed=said, left=Traces(data).look().lines(), others=others(data)
    )


def _report(data: DataDir, state: UpState, ready: bool, nodes: tuple[Node, ...], pods: tuple[Pod, ...]) -> Report:
    holds = {node.metadata.name: _is_ready(node) for node in nodes}
    reports = tuple(NodeReport(node.name, node.kind, node.detail, holds.get(node.name, False)) for node in state.nodes)
    own = {node.name for node in state.nodes}
    played = Counter(
        "Ready" if _is_ready(node) else "NotReady"
        for node in nodes
        if is_played(node) and node.metadata.name not in own and not state.joined
    )
    return Report(
        running=True,
        data=str(data.root),
        ready=ready,
        version=state.version,
        pid=state.pid,
        started=state.started,
        server=state.server,
        kubeconfig=state.kubeconfig if state.joined else str(data.kubeconfig),
        nodes=reports,
        played=dict(played),
        pods=dict(Counter(pod.status.phase for pod in pods)),
        others=others(data),
    )


def _is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
