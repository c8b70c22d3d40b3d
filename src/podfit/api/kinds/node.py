"""The kinds of node.k8s.io."""

from typing import Any

from podfit.api.meta.columns import AGE, NAME, age
from podfit.api.meta.resource_info import Column, ResourceInfo
from podfit.api.node.v1.types import RuntimeClass

RUNTIME = (NAME, Column("Handler", description="The node's own name for it."), AGE)


def runtime_row(runtime: RuntimeClass, now: str) -> list[Any]:
    return [runtime.metadata.name, runtime.handler, age(runtime, now)]


KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=RuntimeClass,
        created_by_update=True,
        unconditional=False,
        group="node.k8s.io",
        resource="runtimeclasses",
        singular="runtimeclass",
        namespaced=False,
        columns=RUNTIME,
        row=runtime_row,
    ),
)
