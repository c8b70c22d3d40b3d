"""Affinity of pods: node affinity, pod affinity and anti-affinity."""

from typing import ClassVar

from podfit.api.meta.base import Struct, always
from podfit.api.meta.v1.types import LabelSelector


class NodeSelectorRequirement(Struct):
    key: str = always(default="")
    operator: str = always(default="")
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct):
    whole: ClassVar[bool] = True
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct):
    whole: ClassVar[bool] = True
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct):
    preference: NodeSelectorTerm = always(default=NodeSelectorTerm())
    weight: int = always(default=0)


class NodeAffinity(Struct):
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Struct):
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = always(default="")


class WeightedPodAffinityTerm(Struct):
    pod_affinity_term: PodAffinityTerm = always(default=PodAffinityTerm())
    weight: int = always(default=0)


class PodAffinity(Struct):
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class PodAntiAffinity(Struct):
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(Struct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Struct):
    key: str = ""
    effect: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class TopologySpreadConstraint(Struct):
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    max_skew: int = always(default=0)
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    topology_key: str = always(default="")
    when_unsatisfiable: str = always(default="")
