"""The load of a pod, for eviction: its usage beside its requests."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import Volume
from podfit.decide.pod.requests import pod_requests

Part = Literal["roots", "logs", "volumes", "own"]
"""Of local storage: the writable layers of containers, their logs, volumes on the node's disk, and files of the kubelet
that containers may write to."""
EVERYTHING: tuple[Part, ...] = ("roots", "logs", "volumes", "own")
EPHEMERAL, INODES = "ephemeral-storage", "inodes"


class Used(msgspec.Struct, frozen=True):
    """What is used of a file system."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(self.bytes + other.bytes, self.inodes + other.inodes)


def total(parts: Iterable[Used]) -> Used:
    return sum(parts, start=Used())


class LocalStorage(msgspec.Struct, frozen=True):
    """`roots` and `logs` by container, `volumes` by volume, `own` by name."""

    roots: Mapping[str, Used] = msgspec.field(default_factory=dict)
    logs: Mapping[str, Used] = msgspec.field(default_factory=dict)
    volumes: Mapping[str, Used] = msgspec.field(default_factory=dict)
    own: Mapping[str, Used] = msgspec.field(default_factory=dict)

    def of(self, part: Part) -> Mapping[str, Used]:
        return {"roots": self.roots, "logs": self.logs, "volumes": self.volumes, "own": self.own}[part]


NOTHING = LocalStorage()


class Load(msgspec.Struct, frozen=True):
    """A pod at its allocated size, and what it uses: bytes of memory by container, and storage."""

    pod: Pod
    memory: Mapping[str, int] = msgspec.field(default_factory=dict)
    storage: LocalStorage = NOTHING

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    @property
    def memory_over(self) -> int:
        """Bytes beyond what the pod requested; less than none when it uses less."""
        return sum(self.memory.values()) - _requested(self.pod, "memory")

    def stored(self, parts: Iterable[Part]) -> Used:
        return total(used for part in parts for used in self.storage.of(part).values())

    def storage_over(self, parts: Iterable[Part], resource: str) -> int:
        """The same of local storage. Nobody can request inodes."""
        used = self.stored(parts)
        return used.inodes if resource == INODES else used.bytes - _requested(self.pod, EPHEMERAL)


def _requested(pod: Pod, resource: str) -> int:
    amount = pod_requests(pod).get(resource)
    return amount.value() if amount is not None else 0


def is_local(volume: Volume) -> bool:
    """Whether it takes of the node's disk and goes with its pod."""
    empty_dir = volume.empty_dir
    return volume.config_map is not None or (empty_dir is not None and empty_dir.medium != "Memory")
