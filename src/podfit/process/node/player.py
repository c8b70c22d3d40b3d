"""Plays Nodes that somebody made by KWOK's contract: each annotated `kwok.x-k8s.io/node: fake` has a simulated kubelet,
for as long as it is there (`podfit up --play-kwok-nodes`, docs/kwok.md).

    Nodes, Leases (informers) ──▶ decide.node.simulated.judge ──▶ one task for each Node that is played
                                                              └─▶ an event on a Node that is not, and why

The Node object is its maker's: it is never made nor deleted here, and a played kubelet that nobody asks for any more
ends without a word. What runs on it is forgotten then, as with a machine that was given back.
"""

import asyncio
import hashlib
import logging
import shutil
import socket
from collections.abc import Collection

import msgspec

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.nodes.types import Node
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock, Timer
from podfit.core.randomness import Random
from podfit.decide.node.simulated import FAKE_ANNOTATION, Left, Played, judge
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Handler
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import ClusterError
from podfit.process.node.backend import simulated_backend
from podfit.process.node.client import local_client
from podfit.process.node.cluster_node import ClusterNode
from podfit.process.node.kubelet_config import PlayedNode
from podfit.process.options import NodeKind, UpOptions

log = logging.getLogger(__name__)

LEASES = "kube-node-lease"
AT_ONCE = 16
"""Kubelets that start beside each other."""
NOT_PLAYED = "NotPlayed"
RETRY_SECONDS = 60.0


def holder_of(data: DataDir) -> str:
    """Who we are in Leases: the same after a restart, another than that of any other cluster."""
    place = f"{socket.gethostname()}:{data.root}"
    return f"podfit-{hashlib.sha256(place.encode()).hexdigest()[:12]}"


class _Playing(msgspec.Struct, frozen=True):
    uid: str
    node: ClusterNode
    task: asyncio.Task[None]


class NodePlayer:
    """`run` until cancelled, then `stop`. `reads` may list and watch Nodes and Leases; `api` answers the kubelets, at
    `api_server` for containers. `own` are names of Nodes that this process has by itself."""

    def __init__(
        self,
        options: UpOptions,
        reads: Client,
        api: Handler,
        clock: Clock,
        random: Random,
        *,
        own: Collection[str],
        api_server: str,
    ) -> None:
        self._options, self._api, self._clock, self._random = options, api, clock, random
        self._own, self._api_server = frozenset(own), api_server
        self._holder = holder_of(options.data)
        self._nodes = Informer(reads, Node, clock=clock)
        self._leases = Informer(reads, Lease, clock=clock, namespace=LEASES)
        self._events = EventRecorder(reads, component="podfit", clock=clock)
        self._playing: dict[str, _Playing] = {}
        self._ending: set[str] = set()
        self._said: dict[str, tuple[str, str]] = {}  # of those that are not played: UID and why
        self._full: dict[str, None] = {}  # of those the ones that wait for another to go, in their order
        self._timers: dict[str, Timer] = {}
        self._starts = asyncio.Semaphore(AT_ONCE)
        self._stopping = self._stop_pods = False
        self.supervisor = Supervisor("played nodes")

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """Those that are played now."""
        return tuple(playing.node for playing in self._playing.values())

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            group.create_task(self._leases.run())
            await self._leases.synced.wait()  # whose a Node is is known before it is looked at
            self._leases.add_handler(
                add=self._lease_changed, update=lambda _, new: self._lease_changed(new), delete=self._lease_changed
            )
            self._nodes.add_handler(
                add=self._node_changed, update=lambda _, new: self._node_changed(new), delete=self._node_gone
            )
            group.create_task(self._nodes.run())
            await self._nodes.synced.wait()
            self._clear()

    async def stop(self, *, pods: bool) -> None:
        """End what is played; with `pods` their containers end first, and the Nodes say that they go."""
        self._stopping, self._stop_pods = True, pods
        for timer in self._timers.values():
            timer.cancel()
        for name in tuple(self._playing):
            self._end(name)
        await self.supervisor.finish()

    # ------------------------------------------------------------------ inside

    def _clear(self) -> None:
        """Directories of Nodes that were deleted while nobody was here."""
        for directory in self._options.data.played("").glob("*"):
            if directory.name not in self._playing:
                shutil.rmtree(directory, ignore_errors=True)

    def _lease_changed(self, lease: Lease) -> None:
        name = lease.metadata.name
        if name in self._playing and lease.spec.holder_identity == self._holder:
            return  # our own renewals
        self._look(name)

    def _node_changed(self, node: Node) -> None:
        self._look(node.metadata.name)

    def _node_gone(self, node: Node) -> None:
        self._forget(node.metadata.name)
        self._look(node.metadata.name)

    def _look(self, name: str) -> None:
        """Play the Node of this name, end that, or say why it is not played: whatever is not so yet."""
        node, playing = self._nodes.get(name), self._playing.get(name)
        if self._stopping:
            return
        verdict = self._verdict(node) if node is not None else Left()
        if playing is not None:
            if node is None or node.metadata.uid != playing.uid or isinstance(verdict, Left):
                self._end(name)
        elif node is None:
            self._forget(name)
        elif isinstance(verdict, Left):
            self._leave(node, verdict)
        else:
            self._begin(node, verdict)

    def _begin(self, node: Node, size: Played) -> None:
        name = node.metadata.name
        try:
            made = self._made(name, size)
        except (ClusterError, OSError) as error:
            self._leave(node, Left(f"it cannot be simulated: {error}", RETRY_SECONDS))
            return
        self._forget(name)
        task = self.supervisor.begin(self._play(made), name=f"played node {name}")
        self._playing[name] = _Playing(node.metadata.uid, made, task)
        task.add_done_callback(lambda _: self._ended(name))

    async def _play(self, node: ClusterNode) -> None:
        """Until cancelled, once."""
        try:
            async with self._starts:
                await node.start(lambda: None)
            await asyncio.Event().wait()
        except OSError as error:
            log.warning("a node is not played any more node=%s error=%s", node.name, error)
            await self._clock.sleep(RETRY_SECONDS)
        finally:
            await node.stop(pods=self._stop_pods, runtime=True)

    def _end(self, name: str) -> None:
        if name not in self._ending:
            self._ending.add(name)
            self._playing[name].task.cancel()

    def _ended(self, name: str) -> None:
        self._ending.discard(name)
        del self._playing[name]
        if self._stopping:
            return
        shutil.rmtree(self._options.data.played(name), ignore_errors=True)
        self._look(name)
        if self._full:
            self._look(next(iter(self._full)))

    def _verdict(self, node: Node) -> Played | Left:
        name = node.metadata.name
        lease, others = self._leases.get(name, LEASES), len(self._playing) - (name in self._playing)
        return judge(node, lease, holder=self._holder, own=self._own, others=others, now=self._clock.now())

    def _leave(self, node: Node, left: Left) -> None:
        """Say once why it is not played, and look again when that may have changed."""
        name, said = node.metadata.name, (node.metadata.uid, left.why)
        if not left.why:
            self._forget(name)
            return
        if self._said.get(name) != said:
            self._forget(name)
            self._said[name] = said
            text = f"Not played, although it is annotated {FAKE_ANNOTATION}: {left.why}"
            self._events.event(node, "Warning", NOT_PLAYED, text)
        if left.full:
            self._full[name] = None
        if left.seconds is not None and name not in self._timers:
            self._timers[name] = self._clock.call_later(max(left.seconds, 1.0), lambda: self._due(name))

    def _due(self, name: str) -> None:
        del self._timers[name]
        self._look(name)

    def _forget(self, name: str) -> None:
        """Nothing is waited for, nothing was said."""
        self._said.pop(name, None)
        self._full.pop(name, None)
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def _made(self, name: str, size: Played) -> ClusterNode:
        options, clock = self._options, self._clock
        return ClusterNode(
            name,
            NodeKind.SIMULATED,
            simulated_backend(clock, programs_end=options.programs_end, passing_seconds=options.passing_seconds),
            options,
            local_client(name, self._api, self._random),
            clock,
            api_server=self._api_server,
            played=PlayedNode(size, self._holder),
        )
