"""From a kind to its strategy."""

from podfit.api.meta.base import Object
from podfit.api.structural.custom import is_custom
from podfit.apiserver.registry.strategies import (
    apiextensions,
    apps,
    batch,
    certificates,
    coordination,
    core,
    custom,
    events,
)
from podfit.apiserver.registry.strategies.strategy import Strategy

_DEFAULT = Strategy()
_STRATEGIES: dict[type[Object], Strategy] = {
    **apiextensions.STRATEGIES,
    **apps.STRATEGIES,
    **batch.STRATEGIES,
    **certificates.STRATEGIES,
    **coordination.STRATEGIES,
    **core.STRATEGIES,
    **events.STRATEGIES,
}


def strategy_of(kind: type[Object]) -> Strategy:
    return _STRATEGIES.get(kind) or (custom.STRATEGY if is_custom(kind) else _DEFAULT)
