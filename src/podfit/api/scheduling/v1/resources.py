"""The kinds of scheduling.k8s.io."""

from podfit.api.registry import ResourceInfo
from podfit.api.scheduling.v1.columns import PRIORITY_CLASS, priority_class_row
from podfit.api.scheduling.v1.types import PriorityClass

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=PriorityClass,
        group="scheduling.k8s.io",
        resource="priorityclasses",
        singular="priorityclass",
        short_names=("pc",),
        namespaced=False,
        counted=lambda _: None,  # a class never changes
        columns=PRIORITY_CLASS,
        row=priority_class_row,
    ),
)
