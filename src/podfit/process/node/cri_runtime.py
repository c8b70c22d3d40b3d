"""Connections to a CRI runtime: the one place in `process` that loads gRPC.

It takes a tenth of a second and belongs to the extra `podfit[node]`, so it is imported when a runtime is spoken to.
"""

from pathlib import Path

from podfit.kubelet.probes.node_network import NodeReach
from podfit.kubelet.runtime.archives import Importer
from podfit.kubelet.runtime.container_network import ContainerReach
from podfit.kubelet.runtime.protocol import Runtime


def cri_runtime(socket: Path, importer: Importer | None = None) -> Runtime:
    from podfit.kubelet.runtime.cri.client import CRIRuntime

    return CRIRuntime(socket, importer)


def node_network() -> ContainerReach:
    """The network as a real node sees it, with gRPC probes."""
    from podfit.kubelet.runtime.cri.health import check_health

    return NodeReach(check_health)
