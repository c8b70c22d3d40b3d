"""The kinds of node.k8s.io."""

from podfit.api.node.v1.types import RuntimeClass
from podfit.api.registry import ResourceInfo
from podfit.api.storage.v1.columns import RUNTIME, runtime_row

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
