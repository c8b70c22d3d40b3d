"""`RoutedNetwork`: addresses for the pods of a real node, from the range that the cluster gives it."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from podfit.core.clock import Clock
from podfit.decide.node.pod_network import FORWARDING, OF_AN_INTERFACE, PluginsPlace, conflist, gateway, guard, range_of
from podfit.kubelet.network.leftovers import LEAST_SECONDS, NetworkTraces
from podfit.kubelet.network.machine import PROC, RangeTaken, SharedNetwork, interface_of, mtu
from podfit.kubelet.network.routing import RouteFailed, keep_gateway
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.net import nft
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)

NO_RANGE = "the node has no range of addresses for its pods (spec.podCIDR) yet"
READY_SECONDS = 10.0
STEP = 0.01
SWEEP_SECONDS = 60.0
FIRST_SWEEP_SECONDS = 6.0
"""After a start: what a runtime that was killed has left may hold up its pods."""


class PodNetwork(Protocol):
    """`host` is whether every pod is on the host's network; `problem` is why no pod with an address of its own can
    start now, empty when it can. `switched` is the kernel's switch that is on for it and was off before.
    """

    @property
    def host(self) -> bool: ...
    @property
    def problem(self) -> str: ...
    @property
    def switched(self) -> str: ...

    async def recover(self) -> None:
        """Brings it back as it was when the kubelet before this one ended, whether or not the API can be asked."""

    async def assign(self, network: str) -> bool:
        """The range of this node, as its object says it, empty for none; whether `problem` says something else now."""

    async def joined(self, addresses: Iterable[str]) -> None:
        """A sandbox has these addresses."""

    async def run(self) -> None:
        """Look after it until cancelled."""


class OthersNetwork(msgspec.Struct, frozen=True):
    """Not ours to make: an external runtime has plugins of its own, or all pods are on the host's network."""

    host: bool

    @property
    def problem(self) -> str:
        return ""

    @property
    def switched(self) -> str:
        return ""

    async def recover(self) -> None:
        """There was nothing."""

    async def assign(self, network: str) -> bool:
        return False

    async def joined(self, addresses: Iterable[str]) -> None:
        """Its addresses are somebody else's business."""

    async def run(self) -> None:
        """There is nothing to look after."""


class NetworkPlaces(msgspec.Struct, frozen=True):
    """`tag` is the cluster's, the name of its network and of its table; `configuration` is the plugins' directory."""

    tag: str
    configuration: Path
    traces: NetworkTraces
    shared: SharedNetwork
    description: str
    """Said by the table, for whoever wonders whose it is."""


class RoutedNetwork:
    """`api_port` is where the API server listens for pods on the gateway's address; 0 for nowhere. It is not `guarded`
    where the kernel takes no rules.
    """

    host = False

    def __init__(
        self, places: NetworkPlaces, runtime: Runtime, clock: Clock, *, api_port: int, guarded: bool = True
    ) -> None:
        self.problem, self.switched = NO_RANGE, ""
        self._guarded = guarded
        self._places, self._runtime, self._clock, self._api_port = places, runtime, clock, api_port
        self._assigned = ""
        self._assigning = asyncio.Lock()

    async def recover(self) -> None:
        if network := await asyncio.to_thread(self._configured):
            await self.assign(network)

    async def assign(self, network: str) -> bool:
        """What cannot be done is tried again with the next look at the node."""
        async with self._assigning:
            before = self.problem
            if network and (network != self._assigned or self.problem):
                try:
                    await self._begin(network)
                except (RangeTaken, RouteFailed, nft.NftFailed, CRIError, OSError) as error:
                    self.problem = str(error)
                    log.warning("no network for pods range=%s error=%s", network, error)
            return self.problem != before

    async def joined(self, addresses: Iterable[str]) -> None:
        """The switches of its interface; raises OSError where they cannot be set, and then the pod may not start."""
        for address in addresses:
            if interface := interface_of(address):
                for switch, value in OF_AN_INTERFACE.items():
                    path = PROC / "sys" / switch.format(interface)
                    if path.exists():  # IPv6 may be off
                        path.write_text(value)

    async def run(self) -> None:
        """Frees what pods have left that are gone, until cancelled."""
        pause = FIRST_SWEEP_SECONDS
        while True:
            await self._clock.sleep(pause)
            pause = SWEEP_SECONDS
            try:
                sandboxes = {sandbox.id for sandbox in await self._runtime.list_sandboxes()}
                now = self._clock.now().timestamp()
                freed = await asyncio.to_thread(self._places.traces.sweep, sandboxes, now, LEAST_SECONDS)
            except (CRIError, OSError) as error:
                log.warning("cannot look for addresses of pods that are gone error=%s", error)
                continue
            for one in freed:
                log.info("freed what a pod has left that is gone what=%s", one)

    async def _begin(self, network: str) -> None:
        places = self._places
        places.shared.claim(network)
        self.switched = FORWARDING.replace("/", ".") if places.shared.forward() else ""
        await keep_gateway(gateway(network))
        if self._guarded:
            await nft.apply(guard(places.tag, network, api_port=self._api_port, comment=places.description))
        place = PluginsPlace(places.tag, str(places.traces.addresses), mtu())
        text = msgspec.json.format(msgspec.json.encode(conflist(network, place)))
        file = self._file
        if not file.exists() or file.read_bytes() != text:
            write_atomic(file, text)
        await self._until_ready()
        self._assigned, self.problem = network, ""
        await self._attach_again()

    @property
    def _file(self) -> Path:
        return self._places.configuration / "10-podfit.conflist"

    def _configured(self) -> str:
        """The range that the plugins were told last; empty for none."""
        try:
            return range_of(msgspec.json.decode(self._file.read_bytes()))
        except (OSError, msgspec.DecodeError):
            return ""

    async def _until_ready(self) -> None:
        """The runtime has read the configuration. Raises CRIError."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while not (status := await self._runtime.status()).network_ready:
            if self._clock.monotonic() > deadline:
                texts = [c.message for c in status.conditions if c.type == "NetworkReady"]
                raise CRIError(f"the runtime takes no network: {'; '.join(texts)}")
            await self._clock.sleep(STEP)

    async def _attach_again(self) -> None:
        """Interfaces of pods that were there before, should a kubelet have been killed before it came to them."""
        for address in self._places.traces.taken():
            try:
                await self.joined((address,))
            except OSError as error:
                log.warning("switches of a pod's interface not set address=%s error=%s", address, error)
