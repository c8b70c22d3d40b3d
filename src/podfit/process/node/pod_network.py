"""The network of a data directory's pods on this machine: which one it is, its places, and taking it down."""

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.node.pod_network import gateway
from podfit.decide.workload.nodes.ipam import NodeRanges
from podfit.kubelet.network import routing
from podfit.kubelet.network.leftovers import NetworkTraces
from podfit.kubelet.network.machine import RangeTaken, SharedNetwork
from podfit.kubelet.network.network import NetworkPlaces, OthersNetwork, PodNetwork, RoutedNetwork
from podfit.kubelet.runtime.containerd import Places
from podfit.kubelet.runtime.simulated.runtime import SimulatedRuntime
from podfit.net import nft
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError
from podfit.process.node.backend import NodeBackend
from podfit.process.node.machine import filter_lacks
from podfit.process.options import NodeOptions, UpOptions, makes_network

if TYPE_CHECKING:
    from podfit.client.rest import Client  # not for `down`, which asks nobody

log = logging.getLogger(__name__)

NAMED = 5


def network_tag(data: DataDir) -> str:
    """What the directory's network and its tables are called: no other directory's is."""
    return f"podfit-{hashlib.sha256(str(data.root).encode()).hexdigest()[:10]}"


def services_table(data: DataDir) -> str:
    return f"{network_tag(data)}-services"


def shared_network(data: DataDir) -> SharedNetwork:
    return SharedNetwork(network_tag(data))


def network_traces(data: DataDir) -> NetworkTraces:
    runtime = Places(data.containerd)
    return NetworkTraces(network_tag(data), data.containerd / "addresses", runtime.run / "state")


def pod_network(
    options: NodeOptions, backend: NodeBackend, clock: Clock, *, api_port: int, guarded: bool = True
) -> PodNetwork:
    """The network of a node with this backend; `api_port` and `guarded` as in `RoutedNetwork`."""
    wanted = options.kubelet.has_addresses
    if isinstance(backend.runtime, SimulatedRuntime) or not makes_network(options):
        return OthersNetwork(host=not wanted)
    if not wanted or backend.containerd is None:
        return OthersNetwork(host=True)
    data = options.data
    places = NetworkPlaces(
        tag=network_tag(data),
        configuration=backend.containerd.places.root / "cni",
        traces=network_traces(data),
        shared=shared_network(data),
        description=f"pods of podfit on {data.root}",
    )
    return RoutedNetwork(places, backend.runtime, clock, api_port=api_port, guarded=guarded)


def claim_range(options: UpOptions) -> NodeRanges:
    """The range of addresses of this cluster's pods, which no other cluster of the machine has: the one that was named,
    or that it has had, or a free one. Raises MachineError, UsageError.
    """
    data, wanted = options.data, options.controllers.cluster_cidr
    remembered = data.pod_range.read_text().strip() if data.pod_range.exists() else ""
    if wanted and remembered and wanted != remembered and network_traces(data).taken():
        raise MachineError(
            f"--cluster-cidr {wanted}: pods of this directory have addresses of {remembered}",
            fix=(data.command("down"),),
        )
    try:
        network = shared_network(data).claim(wanted or remembered)
    except RangeTaken as error:
        raise MachineError(str(error), fix=("name another range:  --cluster-cidr NETWORK",)) from error
    except OSError as error:
        raise MachineError(f"the ranges of this machine's clusters cannot be written: {error}") from error
    data.pod_range.write_text(f"{network}\n")
    return NodeRanges.of(network, options.controllers.node_cidr_mask_size)


def first_gateway(ranges: NodeRanges) -> str:
    """The gateway of the node that gets the first part."""
    return gateway(ranges.free(()))


async def network_lines(client: "Client", ranges: NodeRanges, network: PodNetwork) -> list[str]:
    """What `up` says of the pods' network: what it has switched on, and which pods are still on the host's."""
    switched = network.switched
    more = f"; {switched} is on from now, `podfit down` sets it back" if switched else ""
    pods = (await client.list(Pod)).items
    old = [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods if _stays(pod)]
    lines = [f"  pods      {ranges.cluster}{more}"]
    if old:
        named = ", ".join(old[:NAMED]) + (f" and {len(old) - NAMED} more" if len(old) > NAMED else "")
        lines.append(f"  note      on the host's network until they are made anew: {named}")
    return lines


def _stays(pod: Pod) -> bool:
    """It has no address of its own, though it does not ask for the host's."""
    status = pod.status
    return not pod.spec.host_network and bool(status.pod_ip) and status.pod_ip == status.host_ip and not has_ended(pod)


async def _own_tables(data: DataDir) -> frozenset[str]:
    """None where the kernel has no tables at all. Raises NftFailed."""
    try:
        return await nft.tables() & {network_tag(data), services_table(data)}
    except nft.NftFailed:
        if await asyncio.to_thread(filter_lacks):
            return frozenset()
        raise


async def forget_services(data: DataDir) -> None:
    """Pods had addresses and Services led to them; nobody keeps the rules up to date any more."""
    try:
        if services_table(data) in await _own_tables(data):
            await nft.remove(services_table(data))
    except nft.NftFailed as error:
        log.warning("rules of Services that an earlier podfit may have left stay error=%s", error)


async def remove_network(data: DataDir) -> None:
    """Nothing of it stays on the machine. The containers and the runtime are gone. Raises MachineError."""
    shared = shared_network(data)
    try:
        claimed = await asyncio.to_thread(shared.claimed)
        await asyncio.to_thread(network_traces(data).remove)
        if not claimed:
            return
        for table in await _own_tables(data):
            await nft.remove(table)
        for network in claimed:
            await routing.forget_gateway(gateway(network))
        await asyncio.to_thread(shared.release)
    except (nft.NftFailed, routing.RouteFailed, OSError) as error:
        what = str(error) or type(error).__name__
        raise MachineError(f"the pods' network is not taken down: {what}") from error
