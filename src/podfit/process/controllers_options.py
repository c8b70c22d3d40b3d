"""Which controllers run, under upstream's names, and what each of them is told."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from podfit.core.options import LIST, Option, Part, Unit
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.decide.workload.nodes.ipam import DEFAULT_CLUSTER_RANGE, DEFAULT_MASK, BadRange, NodeRanges

HORIZONTAL = "horizontal-pod-autoscaler"
NODE_IPAM = "node-ipam-controller"
IN_PLACE_ROLLOUT = "in-place-rollout"
"""Runs only where it is named: podfit's own controllers do that themselves, and leave it to this one then."""
CONTROLLERS = (
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "persistentvolumeclaim-protection-controller",
    "certificatesigningrequest-signing-controller",
    "persistentvolume-protection-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "ttl-after-finished-controller",
    "disruption-controller",
    "pod-garbage-collector-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    NODE_IPAM,
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "persistentvolume-binder-controller",
    "ephemeral-volume-controller",
    HORIZONTAL,
)
"""Under upstream's names; the one of certificates approves, too."""
MAKERS = {
    "deployment-controller": "deployments",
    "replicaset-controller": "replicasets",
    "replicationcontroller-controller": "replicationcontrollers",
    "statefulset-controller": "statefulsets",
    "daemonset-controller": "daemonsets",
    "job-controller": "jobs",
    "cronjob-controller": "cronjobs",
}
"""Which resources become pods by which controller."""
ATTENDED = MAKERS | {HORIZONTAL: "horizontalpodautoscalers"}
"""Of which resources a warning says that nobody acts on them, where their controller does not run."""


class MakeRoom(StrEnum):
    """What may be done to lower-priority pods for a deferred resize (docs/room.md)."""

    NO = "no"
    SHRINK = "shrink"
    PREEMPT = "preempt"


def _wanted_room(given: bool | str) -> MakeRoom:
    return MakeRoom.PREEMPT if given == "preempt" else MakeRoom.SHRINK if given else MakeRoom.NO


def _controllers(given: tuple[str, ...]) -> tuple[str, ...]:
    """ValueError for a controller that there is not."""
    if unknown := sorted({name.removeprefix("-") for name in given} - {"*", *CONTROLLERS, IN_PLACE_ROLLOUT}):
        known = ", ".join((*CONTROLLERS, IN_PLACE_ROLLOUT))
        raise ValueError(f"there is no controller {unknown[0]!r} (known: {known})")
    return given or ("*",)


_NAMES = replace(LIST, read=lambda given: _controllers(LIST.read(given)), decode=_controllers)
_MAKE_ROOM = Unit(
    flag=bool | Literal["preempt"], read=_wanted_room, text=lambda room: "" if room is MakeRoom.NO else room.value
)


class ControllersOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers` are upstream's names: `*` is all, `-NAME` all but it; `in-place-rollout` is podfit's, and is not of
    all."""

    make_room: Annotated[
        MakeRoom,
        Option(
            "Shrink lower-priority neighbours for a deferred resize, down to their podfit.dev/minimum; =preempt also "
            "evicts where that is not enough (docs/room.md).",
            unit=_MAKE_ROOM,
            negative=False,
        ),
    ] = MakeRoom.NO
    controllers: Annotated[
        tuple[str, ...],
        Option("Which to run, by name: *, NAME, or -NAME for all but it.", path="Generic.Controllers", unit=_NAMES),
    ] = ("*",)
    horizontal: Annotated[Settings, Part()] = Settings(upstream_compatible=False)
    """Of the horizontal pod autoscaler."""
    allocate_node_cidrs: Annotated[bool, Option("Give each node a range of addresses for its pods.")] = True
    cluster_cidr: Annotated[
        str, Option("Addresses of pods.", usual=f"{DEFAULT_CLUSTER_RANGE}, with `up` another where that one is in use")
    ] = ""
    """Addresses of pods; empty is `DEFAULT_CLUSTER_RANGE`, and under `up` another where this machine uses that one."""
    node_cidr_mask_size: Annotated[int, Option("Bits of the mask of each node's range.")] = DEFAULT_MASK

    def ranges(self) -> NodeRanges:
        """Raises BadRange."""
        return NodeRanges.of(self.cluster_cidr or DEFAULT_CLUSTER_RANGE, self.node_cidr_mask_size)

    @property
    def problem(self) -> str:
        """Why there can be no such ranges; empty when there can."""
        try:
            self.ranges()
        except BadRange as error:
            return str(error)
        return ""

    def controlled_resources(self) -> frozenset[str]:
        """The resources that are acted on in this process, of those that `ATTENDED` names."""
        return frozenset(resource for name, resource in ATTENDED.items() if self.runs(name))

    def runs(self, name: str) -> bool:
        """Whether it is wanted. The first word about a name counts, and a name more than `*`."""
        said = (controller for controller in self.controllers if controller.removeprefix("-") == name)
        every = "*" in self.controllers and name != IN_PLACE_ROLLOUT
        return next(said, name if every else "") == name

    @property
    def foreign(self) -> bool:
        """Whether nothing runs but what works beside somebody else's controllers."""
        return self.controllers == (IN_PLACE_ROLLOUT,) and self.make_room is MakeRoom.NO
