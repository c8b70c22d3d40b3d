"""Pods in few words, for tests of decisions: `pod(container("a", requests={"cpu": "100m"}))`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.api.core.v1.pods.container_status import ContainerState, ContainerStateRunning, ContainerStatus
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodSpec, PodStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import Quantity

Amounts = Mapping[str, str]
RUNNING = ContainerState(running=ContainerStateRunning(started_at="2026-01-01T00:00:00Z"))


def amounts(given: Amounts | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in (given or {}).items()}


def needs(requests: Amounts | None = None, limits: Amounts | None = None) -> ResourceRequirements:
    return ResourceRequirements(requests=amounts(requests), limits=amounts(limits))


def container(name: str, requests: Amounts | None = None, limits: Amounts | None = None, **more: Any) -> Container:
    return Container(name=name, image="app:1", resources=needs(requests, limits), **more)


def sidecar(name: str, requests: Amounts | None = None, limits: Amounts | None = None, **more: Any) -> Container:
    return container(name, requests, limits, restart_policy="Always", **more)


def pod(*containers: Container, init: tuple[Container, ...] = (), name: str = "web", **more: Any) -> Pod:
    """`more` goes to the spec, except `status`, `labels`, `annotations`, `generation` and `namespace`."""
    status: PodStatus = more.pop("status", PodStatus())
    meta = {key: more.pop(key) for key in ("labels", "annotations", "generation", "namespace") if key in more}
    return Pod(
        metadata=ObjectMeta(name=name, **{"namespace": "default", "generation": 1, **meta}),
        spec=PodSpec(containers=containers, init_containers=init, **more),
        status=status,
    )


def running(
    name: str, actual: ResourceRequirements | None = None, allocated: Amounts | None = None, **more: Any
) -> ContainerStatus:
    return ContainerStatus(name=name, resources=actual, allocated_resources=amounts(allocated), state=RUNNING, **more)


def infeasible(generation: int = 1) -> PodCondition:
    return PodCondition(type="PodResizePending", status="True", reason="Infeasible", observed_generation=generation)


def with_status(given: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(given, status=msgspec.structs.replace(given.status, **fields))
