"""The scope of a recommendation: for all pods of a VPA alike, for slices of them, for their containers or as a whole.

    podfit.dev/aggregation: pod | node | label=KEY     a slice for each pod, node or value of a label
    podfit.dev/pod-policy: {"mode": "Auto", ...}       the pod as a whole, `spec.resources` (AEP 9988)

A slice is what AEP 7942 calls one: the pods of a VPA whose usage is counted together. Where a container is named,
WHOLE, the empty name, stands for the pod as a whole.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from podfit.api.autoscaling_k8s.v1 import ContainerResourcePolicy, PodResourcePolicy, VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList, Struct
from podfit.api.meta.codec import decode
from podfit.api.meta.validation.names import qualified
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.container_view import WHOLE
from podfit.decide.autoscaling.policies import LONGEST_TEXT
from podfit.decide.workload.daemon.nodes import node_of

AGGREGATION, POD_POLICY = "podfit.dev/aggregation", "podfit.dev/pod-policy"
BY_WORKLOAD, BY_POD, BY_NODE, BY_LABEL = "workload", "pod", "node", "label"
EVERY_SLICE = ""
"""All pods of a VPA, among its slices."""
AUTO, OFF = "Auto", "Off"


class Scope(NamedTuple):
    """`key` is the label's, for BY_LABEL."""

    by: str = BY_WORKLOAD
    key: str = ""

    def __str__(self) -> str:
        return f"{self.by}={self.key}" if self.key else self.by


WORKLOAD = Scope()


class PodFacts(NamedTuple):
    """What says to which slice a pod belongs. `name` is empty of one that is yet to be named, `node` where none is
    known yet.
    """

    name: str
    node: str
    labels: Mapping[str, str]

    @staticmethod
    def of(pod: Pod) -> "PodFacts":
        """A DaemonSet's pod names its node before it is bound."""
        return PodFacts(pod.metadata.name, node_of(pod), pod.metadata.labels)


def scope_of(annotations: Mapping[str, str]) -> Scope | None:
    """What a VPA asks for; None for what cannot be read, which the webhook refuses and which asks for nothing."""
    by, _, key = annotations.get(AGGREGATION, BY_WORKLOAD).partition("=")
    if by == BY_LABEL:
        return Scope(by, key) if not qualified(key) else None
    return Scope(by) if by in (BY_WORKLOAD, BY_POD, BY_NODE) and not key else None


def slice_of(scope: Scope | None, facts: PodFacts) -> str:
    """The slice that a pod belongs to; EVERY_SLICE where it has none."""
    match scope:
        case Scope(by=by) if by == BY_POD:
            return facts.name
        case Scope(by=by) if by == BY_NODE:
            return facts.node
        case Scope(by=by, key=key) if by == BY_LABEL:
            return facts.labels.get(key, EVERY_SLICE)
    return EVERY_SLICE


class PodPolicy(Struct, forbid_unknown_fields=True):
    """`spec.resourcePolicy.podPolicy` as AEP 9988 proposes it; of mode Off where none is given."""

    mode: str = OFF
    min_allowed: ResourceList = msgspec.field(default_factory=dict)
    max_allowed: ResourceList = msgspec.field(default_factory=dict)
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str | None = None
    oom_bump_up_ratio: Quantity | None = None
    oom_min_bump_up: Quantity | None = None


class UnreadablePolicyError(ValueError):
    """Why a pod policy says nothing."""


def pod_policy(annotations: Mapping[str, str]) -> ContainerResourcePolicy | None:
    """The policy for the pod as a whole; None where there is none, or one of mode Off. Raises UnreadablePolicyError."""
    text = annotations.get(POD_POLICY)
    policy = _read(text) if text is not None else None
    return None if policy is None or policy.mode == OFF else policy


def whole_policy(annotations: Mapping[str, str]) -> ContainerResourcePolicy | None:
    """The same; one that cannot be read, which the webhook refuses, asks for nothing."""
    try:
        return pod_policy(annotations)
    except UnreadablePolicyError:
        return None


@lru_cache(maxsize=256)
def _read(text: str) -> ContainerResourcePolicy:
    if len(text) > LONGEST_TEXT:
        raise UnreadablePolicyError(f"may have at most {LONGEST_TEXT} characters")
    try:
        said = decode(text.encode(), PodPolicy)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadablePolicyError(f"cannot be read: {error}") from error
    if said.mode not in (AUTO, OFF):
        raise UnreadablePolicyError(f'mode "{said.mode}" has to be {AUTO} or {OFF}')
    return ContainerResourcePolicy(
        container_name=WHOLE,
        mode=said.mode,
        min_allowed=said.min_allowed,
        max_allowed=said.max_allowed,
        controlled_resources=said.controlled_resources,
        controlled_values=said.controlled_values,
        oom_bump_up_ratio=said.oom_bump_up_ratio,
        oom_min_bump_up=said.oom_min_bump_up,
    )


class Rules(NamedTuple):
    """What a VPA asks for beside one recommendation for all its pods. `whole` is the policy of the pod as a whole."""

    scope: Scope = WORKLOAD
    whole: ContainerResourcePolicy | None = None

    @staticmethod
    def of(annotations: Mapping[str, str]) -> "Rules":
        if AGGREGATION not in annotations and POD_POLICY not in annotations:
            return NO_RULES
        return Rules(scope_of(annotations) or WORKLOAD, whole_policy(annotations))

    @property
    def any(self) -> bool:
        return self.scope != WORKLOAD or self.whole is not None


NO_RULES = Rules()


def resource_policy(vpa: VerticalPodAutoscaler) -> PodResourcePolicy | None:
    """The policy of its containers, or of the pod as a whole where a VPA sizes that: never of both (AEP 9988)."""
    whole = whole_policy(vpa.metadata.annotations)
    return vpa.spec.resource_policy if whole is None else PodResourcePolicy(container_policies=(whole,))
