"""The strategy of events: they belong to nobody, so their deletion waits for no dependents."""

from podfit.api.core.v1.events.types import Event
from podfit.api.events.v1 import types as events
from podfit.api.meta.base import Object
from podfit.apiserver.registry.strategies.strategy import DeleteStrategy, Strategy

_EVENT = Strategy(delete=DeleteStrategy(propagates=False))
STRATEGIES: dict[type[Object], Strategy] = {Event: _EVENT, events.Event: _EVENT}
