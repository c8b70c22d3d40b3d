"""Watches the directory of static manifests: one look a second, which costs a few system calls.

A file that cannot be read keeps the pod that it asked for before: it may be half written.
"""

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.kubelet.static.manifests import BadManifest, read

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
_Stamp = tuple[int, int, int]


class StaticPods(Protocol):
    """Who is told of the pods that manifests ask for."""

    def add_static(self, pod: Pod) -> None: ...

    def drop_static(self, pod: Pod) -> None: ...


class ManifestDirectory:
    """`look` once before the first pod; `run` until cancelled."""

    def __init__(
        self, path: Path | None, *, node: str, clock: Clock, gates: FeatureGates, listeners: Collection[StaticPods]
    ) -> None:
        self._path, self._node, self._clock, self._gates = path, node, clock, gates
        self._listeners = listeners
        self._stamps: dict[str, _Stamp] = {}
        self._pods: dict[str, Pod] = {}

    async def run(self) -> None:
        while self._path is not None:
            await self._clock.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        if self._path is None:
            return
        stamps = _stamps(self._path)
        for name in sorted(self._pods.keys() - stamps.keys()):
            self._drop(self._pods.pop(name))
        for name in sorted(stamps):
            if stamps[name] != self._stamps.get(name):
                self._read(self._path / name)
        self._stamps = stamps

    def _read(self, path: Path) -> None:
        try:
            pod = read(path.read_bytes(), path=str(path), node=self._node, now=self._clock.now(), gates=self._gates)
        except (OSError, BadManifest) as error:
            log.warning("cannot use manifest path=%s error=%s", path, error)
            return
        before = self._pods.get(path.name)
        if before is not None and before.metadata.uid == pod.metadata.uid:
            return
        if any(_name(other) == _name(pod) for name, other in self._pods.items() if name != path.name):
            log.warning("another manifest asks for a pod of this name path=%s pod=%s", path, pod.metadata.name)
            return
        if before is not None:
            self._drop(before)
        self._pods[path.name] = pod
        for listener in self._listeners:
            listener.add_static(pod)

    def _drop(self, pod: Pod) -> None:
        for listener in self._listeners:
            listener.drop_static(pod)


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _stamps(directory: Path) -> dict[str, _Stamp]:
    """What tells a changed file, by name. Names that begin with a dot are no manifests."""
    try:
        entries = [entry for entry in os.scandir(directory) if not entry.name.startswith(".") and entry.is_file()]
        found = {entry.name: entry.stat() for entry in entries}
    except FileNotFoundError:
        return {}
    return {name: (stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in found.items()}
