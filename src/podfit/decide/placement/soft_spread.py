"""Scores of topology spread constraints that only prefer: fewer matching pods in a node's topologies are better.

Upstream's PodTopologySpread: what a node costs is, over its constraints, the number of matching pods in its domain,
weighted by how many domains there are, and `maxSkew - 1`, which waters the differences down. Pods in the domain of a
hostname are those of the node itself. The costs of all nodes that fit are turned into 0 to 100.

    domains of a node ─┐
    pods there ────────┴─▶ cost ─▶ points, by the least and the largest cost
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from podfit.decide.placement.default_spread import HOSTNAME
from podfit.decide.placement.spread import Constraint, constraints, matching, takes_part
from podfit.decide.placement.view import NodeInfo, Resident

MOST = 100
Domains = tuple[str | None, ...]
"""Of a node: its value of each constraint's key, None where it lacks the label."""
Share = tuple[tuple[str, int], ...]
"""Of a node, for each constraint: a domain, and how many pods are added to it."""


class SoftConstraints(msgspec.Struct, frozen=True):
    """Those of a pod; hashable. `whole`: a node that lacks one of the labels is not scored at all."""

    constraints: tuple[Constraint, ...]
    whole: bool

    def domains(self, labels: Mapping[str, str]) -> Domains | None:
        """None for a node that is not scored. Nodes differ by hostname only in whether they have one."""
        domains = tuple(
            None if (value := labels.get(given.topology_key)) is None else "" if _is_node(given) else value
            for given in self.constraints
        )
        return None if self.whole and None in domains else domains

    def weights(self, domains: Collection[Domains], nodes: int) -> tuple[float, ...]:
        """The weight of each constraint, by how many domains it has; `domains` and `nodes` of those that fit and are
        scored."""
        return tuple(
            math.log((nodes if _is_node(given) else len({values[index] or "" for values in domains})) + 2)
            for index, given in enumerate(self.constraints)
        )

    def cost(
        self, domains: Domains, here: Sequence[int], totals: Sequence[Mapping[str, int]], weights: Sequence[float]
    ) -> int:
        """`here` are the matching pods on the node and `totals` those by domain, for each constraint."""
        cost = 0.0
        for index, given in enumerate(self.constraints):
            if (value := domains[index]) is not None:
                count = here[index] if _is_node(given) else totals[index].get(value, 0)
                cost += count * weights[index] + (given.max_skew - 1)
        return math.floor(cost + 0.5)

    def share(self, subject: Resident, view: NodeInfo, here: Sequence[int]) -> Share:
        """What a node adds to the totals: for each constraint its domain, and how many of its pods count there."""
        domains = self.domains(view.labels)
        if domains is None:
            return ()
        return tuple(
            (value or "", count if takes_part(subject.pod, given, view) else 0)
            for given, value, count in zip(self.constraints, domains, here, strict=True)
        )

    def share_of_fitting(self, domains: Domains | None, here: Sequence[int]) -> Share:
        """The same of a node that the pod fits, which therefore takes part."""
        return (
            () if domains is None else tuple((value or "", count) for value, count in zip(domains, here, strict=True))
        )


def soft_constraints(subject: Resident) -> SoftConstraints | None:
    """None for a pod without one."""
    found = constraints(subject, "ScheduleAnyway")
    defaults = subject.default_spread
    return SoftConstraints(found, whole=defaults is None or not defaults.defaulting.of_system) if found else None


def points(cost: int, least: int, most: int) -> int:
    """0 to 100, the cheapest node most; `least` and `most` are over all nodes that fit and are scored."""
    return MOST * (most + least - cost) // most if most else MOST


def spread_evenly(subject: Resident, fitting: Sequence[NodeInfo], views: Sequence[NodeInfo]) -> list[int]:
    """One score for each of the `fitting` nodes; `views` are all."""
    soft = soft_constraints(subject)
    if soft is None:
        return [0] * len(fitting)
    domains = [soft.domains(view.labels) for view in fitting]
    scored = [values for values in domains if values is not None]
    if not scored:
        return [0] * len(fitting)
    totals = tuple(Counter[str]() for _ in soft.constraints)
    for view in views:
        for counts, (value, count) in zip(totals, soft.share(subject, view, _here(soft, subject, view)), strict=False):
            counts[value] += count
    weights = soft.weights(set(scored), len(scored))
    costs = [
        None if values is None else soft.cost(values, _here(soft, subject, view), totals, weights)
        for values, view in zip(domains, fitting, strict=True)
    ]
    counted = [cost for cost in costs if cost is not None]
    least, most = min(counted), max(counted)
    return [0 if cost is None else points(cost, least, most) for cost in costs]


def _here(soft: SoftConstraints, subject: Resident, view: NodeInfo) -> list[int]:
    return [matching(subject.pod, given.selector, view) for given in soft.constraints]


def _is_node(given: Constraint) -> bool:
    return given.topology_key == HOSTNAME
