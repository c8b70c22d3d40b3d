"""Records of the journal, in the order in which they happened, as MessagePack.

Each journal stands by itself: a number stands for a container from its `ContainerRecord` on, and what was known when
the journal was opened is said again. Times are milliseconds since 1970, CPU millicores, memory bytes; -1 is none.
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_of
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.container_view import Scaled

NONE = -1
MOST_LABELS = 16 << 10
"""Characters of a pod's labels; those of one that has more are not kept."""
HASH = "pod-template-hash"


class ContainerRecord(Struct, frozen=True, array_like=True, tag="c"):
    """What the number stands for. `workload` is `Deployment/web`, `Pod/web` of one that nothing controls."""

    number: int
    time: int
    namespace: str
    pod: str
    container: str
    workload: str
    labels: str


class UsageRecord(Struct, frozen=True, array_like=True, tag="u"):
    """A reading of many containers: lists of the same length. `ago` is how long before `time` each was measured;
    `throttled` the share of periods, in thousandths, in which the CPU limit held it back.
    """

    time: int
    numbers: list[int]
    ago: list[int]
    cpu: list[int]
    memory: list[int]
    throttled: list[int]


class SizeRecord(Struct, frozen=True, array_like=True, tag="s"):
    """Requests and limits that hold; `resized` when they were others before."""

    time: int
    number: int
    cpu_request: int
    cpu_limit: int
    memory_request: int
    memory_limit: int
    resized: bool


class OomRecord(Struct, frozen=True, array_like=True, tag="o"):
    """A container ran out of memory: it had asked for `memory`, or used that much when it was evicted."""

    time: int
    number: int
    memory: int


class RecommendationRecord(Struct, frozen=True, array_like=True, tag="r"):
    """What a VPA recommends from now on; `workload` is its target."""

    time: int
    namespace: str
    vpa: str
    workload: str
    container: str
    cpu: int
    cpu_lower: int
    cpu_upper: int
    memory: int
    memory_lower: int
    memory_upper: int


Record: TypeAlias = ContainerRecord | UsageRecord | SizeRecord | OomRecord | RecommendationRecord
encode = msgspec.msgpack.Encoder().encode
decoder = msgspec.msgpack.Decoder(Record)


def workload_of(pod: Pod) -> str:
    """The workload of a pod; of one of a ReplicaSet the Deployment: the set is named by it and the hash of its
    template."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return f"Pod/{pod.metadata.name}"
    ending = f"-{pod.metadata.labels.get(HASH, '')}"
    if owner.kind == "ReplicaSet" and len(ending) > 1 and owner.name.endswith(ending):
        return f"Deployment/{owner.name.removesuffix(ending)}"
    return f"{owner.kind}/{owner.name}"


def labels_of(pod: Pod) -> str:
    """The labels as JSON; empty for more than are kept."""
    text = msgspec.json.encode(pod.metadata.labels, order="sorted").decode()
    return text if len(text) <= MOST_LABELS else ""


def sizes_of(scaled: Scaled) -> tuple[int, int, int, int]:
    """CPU request and limit, memory request and limit."""
    own = scaled.own
    cpu = [NONE if (amount := given.get(CPU)) is None else amount.milli() for given in (own.requests, own.limits)]
    memory = [NONE if (amount := given.get(MEMORY)) is None else amount.value() for given in (own.requests, own.limits)]
    return cpu[0], cpu[1], memory[0], memory[1]


_LABELS = msgspec.json.Decoder(dict[str, str])


def labels_from(text: str) -> Mapping[str, str] | None:
    """None for what was not kept."""
    return _LABELS.decode(text) if re.match(r"\{", text) else None
