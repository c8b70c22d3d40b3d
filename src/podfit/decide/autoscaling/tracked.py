"""What a cluster state keeps of pods and VPAs."""

from collections.abc import Mapping
from typing import NamedTuple

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy
from podfit.core.selectors import Selector


class PodKey(NamedTuple):
    namespace: str
    name: str


class VpaKey(NamedTuple):
    namespace: str
    name: str


class Group(NamedTuple):
    """All pods of a namespace that bear the same labels."""

    namespace: str
    labels: tuple[tuple[str, str], ...]


class Known:
    """What is known of a group: the rows of its containers, and how many of its pods live."""

    __slots__ = ("living", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.living = 0


class TrackedPod(NamedTuple):
    """Its containers, and where the model has each."""

    group: Group
    names: tuple[str, ...]
    slots: tuple[int, ...]
    node: str = ""

    @property
    def by_name(self) -> dict[str, int]:
        return dict(zip(self.names, self.slots, strict=True))


class TrackedVpa:
    """`restored` has the rows of what checkpoints told, by container."""

    __slots__ = ("groups", "policy", "restored", "selector")

    def __init__(
        self,
        selector: Selector,
        policy: PodResourcePolicy | None,
        groups: list[Group],
        restored: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.selector, self.policy, self.groups, self.restored = selector, policy, groups, restored
