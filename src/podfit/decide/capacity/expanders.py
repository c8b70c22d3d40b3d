"""Expanders: which node group to enlarge when several would do. Each is a filter, and they are asked one after another.

Upstream's least-waste, most-pods, least-nodes and priority (cluster-autoscaler, expander); what is left of equal
options is for chance to decide.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import re2

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.core.resources import add
from podfit.decide.capacity.settings import LEAST_NODES, LEAST_WASTE, MOST_PODS
from podfit.decide.pod.requests import pod_requests

T = TypeVar("T", float, int)


class Option(msgspec.Struct, frozen=True):
    """So many more nodes like `template` in the group would give the pods a place; there is a node and a pod."""

    group: str
    nodes: int
    pods: tuple[Pod, ...]
    template: Node


class ExpanderEvent(msgspec.Struct, frozen=True):
    """A Warning about the map of priorities."""

    reason: str
    message: str


Options = Sequence[Option]
Filter = Callable[[Options], list[Option]]


def least_waste(options: Options) -> list[Option]:
    """Those that leave the least share of their nodes' CPU and memory unused."""
    return _smallest(options, waste)


def most_pods(options: Options) -> list[Option]:
    return _smallest(options, lambda option: -len(option.pods))


def least_nodes(options: Options) -> list[Option]:
    return _smallest(options, lambda option: option.nodes)


FILTERS: Mapping[str, Filter] = {LEAST_WASTE: least_waste, MOST_PODS: most_pods, LEAST_NODES: least_nodes}
"""By upstream's names; `priority` also needs its map."""


def waste(option: Option) -> float:
    """The unused shares of CPU and of memory, added up, of the nodes' capacity (not of what pods may have)."""
    capacity = option.template.status.capacity
    asked = add(*(pod_requests(pod) for pod in option.pods))
    cpu = capacity.get("cpu", ZERO).milli() * option.nodes
    memory = capacity.get("memory", ZERO).value() * option.nodes
    wasted = ((cpu, asked.get("cpu", ZERO).milli()), (memory, asked.get("memory", ZERO).value()))
    return sum((there - used) / there if there else 0.0 for there, used in wasted)


class Priorities(msgspec.Struct, frozen=True):
    """The priority expander's map: patterns that are looked for in the names of groups, by priority.

    `problem` says why the map could not be read; then it filters nothing.
    """

    patterns: Mapping[int, Sequence[str]] = msgspec.field(default_factory=dict)
    problem: str = ""

    def filter(self, options: Options) -> tuple[list[Option], list[ExpanderEvent]]:
        """The options of the highest priority that a pattern gives one of them; all of them when none matches."""
        if not options:
            return [], []
        if self.problem:
            return list(options), [ExpanderEvent("PriorityConfigMapInvalid", self.problem)]
        compiled = [(priority, _compiled(patterns)) for priority, patterns in self.patterns.items()]
        ranked = [(_highest(option.group, compiled), option) for option in options]
        events = [
            ExpanderEvent(
                "PriorityConfigMapNotMatchedGroup",
                f"Priority expander: node group {option.group} not found in priority expander configuration. "
                "The group won't be used.",
            )
            for rank, option in ranked
            if rank is None
        ]
        matched = [(rank, option) for rank, option in ranked if rank is not None]
        if not matched:
            text = "Priority expander: no priorities info found for any of the expansion options. No options filtered."
            return list(options), [*events, ExpanderEvent("PriorityConfigMapNoGroupMatched", text)]
        highest = max(rank for rank, _ in matched)
        return [option for rank, option in matched if rank == highest], events


def _compiled(patterns: Sequence[str]) -> list[Any]:
    """RE2, whose time is bounded by the text; a pattern that is none matches nothing."""
    options = re2.Options()
    options.log_errors = False
    result = []
    for pattern in patterns:
        try:
            result.append(re2.compile(pattern, options))
        except re2.error:
            continue
    return result


def _highest(group: str, compiled: Sequence[tuple[int, Sequence[Any]]]) -> int | None:
    """The highest priority with a pattern that is found in the name of the group."""
    found = (priority for priority, patterns in compiled if any(pattern.search(group) for pattern in patterns))
    return max(found, default=None)


def _smallest(options: Options, measure: Callable[[Option], T]) -> list[Option]:
    measured = [(measure(option), option) for option in options]
    least = min((amount for amount, _ in measured), default=None)
    return [option for amount, option in measured if amount == least]
