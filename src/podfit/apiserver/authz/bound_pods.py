"""Which pods are bound to a node, and what each of them makes readable there: kept up from the store's changes.

All kubelets ask for tokens and configuration at once when many pods start; a look at every pod for each of those
questions would be most of what a large cluster does.
"""

import asyncio

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.registry import stored
from podfit.core.loop_slices import OBJECTS
from podfit.decide.node_rights.references import readable_by_node
from podfit.store.protocol import Change, Record, StoreError, Watch

LARGE = 16 * 1024  # bytes of a pod that is decoded in a turn of its own
READABLE = ("secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts")


class BoundPod(msgspec.Struct, frozen=True):
    """`readable` are resources and the names that the pod refers to there."""

    node: str
    namespace: str
    readable: frozenset[tuple[str, str]]


class BoundPods:
    """What was written is looked at with the next question; until the first one nothing is followed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._prefix = stored.prefix(info_for(Pod))
        self._watch: Watch | None = None
        self._pods: dict[str, BoundPod] = {}  # by their keys in the store
        self._nodes: dict[str, dict[str, BoundPod]] = {}
        self._catching_up = asyncio.Lock()
        self._turn = 0

    async def on(self, node: str, namespace: str) -> list[BoundPod]:
        """Raises StoreError."""
        async with self._catching_up:
            watch, self._watch = self._watch, None  # who is cancelled in between leaves nothing that is half known
            try:
                if watch is not None and not await self._catch_up(watch):
                    watch.close()
                    watch = None
                self._watch = watch or await self._begin()
            finally:
                if watch is not None and self._watch is None:
                    watch.close()
        return [pod for pod in self._nodes.get(node, {}).values() if pod.namespace == namespace]

    async def _begin(self) -> Watch:
        """Look at all pods; what follows is in the watch."""
        self._pods.clear()
        self._nodes.clear()
        page = await self._context.store.list(self._prefix)
        watch = self._context.store.watch(self._prefix, after=page.revision)
        try:
            for record in page.records:
                await self._put(record)
        except BaseException:
            watch.close()
            raise
        return watch

    async def _catch_up(self, watch: Watch) -> bool:
        """False when what was written since is not known any more: nobody asked for long."""
        newest: dict[str, Change] = {}
        try:
            while (changes := await anext(watch) if watch.behind else watch.take()) is not None:
                newest |= {change.record.key: change for change in changes}
        except (StoreError, StopAsyncIteration):
            return False
        for key, change in newest.items():
            self._forget(key)
            if not change.deleted:
                await self._put(change.record)
        return True

    async def _put(self, record: Record) -> None:
        self._turn += 1
        if self._turn % OBJECTS == 0 or len(record.value) > LARGE:
            await asyncio.sleep(0)
        pod: Pod = stored.decoded(info_for(Pod), record)
        node = pod.spec.node_name
        if node:
            names = ((resource, name) for resource in READABLE for name in readable_by_node(pod, resource))
            found = BoundPod(node, pod.metadata.namespace, frozenset(names))
            self._pods[record.key] = self._nodes.setdefault(node, {})[record.key] = found

    def _forget(self, key: str) -> None:
        known = self._pods.pop(key, None)
        if known is not None:
            there = self._nodes[known.node]
            del there[key]
            if not there:
                del self._nodes[known.node]
