"""The table from kinds to strategies.

The strategies are imported with the first write: with the rules of all kinds behind them they take longer than the rest
of a start, which writes nothing where a cluster is there already.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from podfit.api.meta.base import Object
from podfit.api.structural.custom import is_custom

if TYPE_CHECKING:
    from podfit.apiserver.registry.strategies.strategy import Strategy


def strategy_of(kind: type[Object]) -> "Strategy":
    strategies, custom, default = _strategies()
    return strategies.get(kind) or (custom if is_custom(kind) else default)


@cache
def _strategies() -> "tuple[Mapping[type[Object], Strategy], Strategy, Strategy]":
    """The strategies by kind; that of custom kinds; that of kinds without one of their own."""
    from podfit.apiserver.registry.strategies import (
        apiextensions,
        apps,
        certificates,
        core,
        custom_resources,
        others,
        strategy,
    )

    groups = (apiextensions, apps, certificates, core, others)
    table = {kind: strategy for group in groups for kind, strategy in group.STRATEGIES.items()}
    return table, custom_resources.STRATEGY, strategy.Strategy()
