"""Volume binding before a pod is bound: its claims get the selected node, and are bound first.

A claim that loses its node again could not be had there; the pod is tried anew.
"""

import asyncio
from collections.abc import Iterable

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.placement.volumes import SELECTED_NODE, claims_of, is_bound

TIMEOUT = 600.0
"""Seconds for which a pod waits for its volumes, as upstream's."""


class NotBound(Exception):
    """A claim was not bound; the message says which, and why."""


class VolumeBinder:
    def __init__(self, client: Client, claims: Informer[PersistentVolumeClaim], clock: Clock) -> None:
        self._client, self._claims, self._clock = client, claims, clock
        self._moved = asyncio.Event()

    def changed(self) -> None:
        """A claim is another."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def bind(self, pod: Pod, node: str) -> None:
        """Returns when every claim of the pod is bound. Raises NotBound, ApiError, ConnectionError."""
        waiting = [claim for claim in self._of(pod) if not is_bound(claim)]
        if not waiting:
            return
        told = {claim.metadata.name: await self._tell(claim, node) for claim in waiting}
        until = self._clock.monotonic() + TIMEOUT
        timer = self._clock.call_later(TIMEOUT, self.changed)
        try:
            while True:
                moved = self._moved
                if all(self._is_done(pod, name, version, node) for name, version in told.items()):
                    return
                if self._clock.monotonic() >= until:
                    raise NotBound(f"claims {', '.join(told)} were not bound within {TIMEOUT:g} s")
                await moved.wait()
        finally:
            timer.cancel()

    def _of(self, pod: Pod) -> Iterable[PersistentVolumeClaim]:
        namespace = pod.metadata.namespace
        return (claim for name in claims_of(pod) if (claim := self._claims.get(name, namespace)) is not None)

    async def _tell(self, claim: PersistentVolumeClaim, node: str) -> int:
        """The version from which on the claim says so."""
        meta = claim.metadata
        if meta.annotations.get(SELECTED_NODE) == node:
            return int(meta.resource_version)
        patch = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node}}}
        patched = await self._client.patch(PersistentVolumeClaim, meta.name, meta.namespace, patch)
        return int(patched.metadata.resource_version)

    def _is_done(self, pod: Pod, name: str, version: int, node: str) -> bool:
        claim = self._claims.get(name, pod.metadata.namespace)
        if claim is None:
            raise NotBound(f"claim {name} is gone")
        if int(claim.metadata.resource_version) < version:
            return False
        if is_bound(claim):
            return True
        if claim.metadata.annotations.get(SELECTED_NODE) != node:
            raise NotBound(f"claim {name} cannot be had on node {node}")
        return False
