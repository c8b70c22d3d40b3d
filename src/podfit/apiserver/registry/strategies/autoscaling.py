"""Strategies of the group autoscaling: HorizontalPodAutoscalers, which nothing of podfit's acts on."""

from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.meta.base import Object
from podfit.apiserver.registry.strategies.strategy import Strategy

_NOBODY = "podfit runs no controller of HorizontalPodAutoscalers: nothing changes the replicas until you run one"
_STRATEGY = Strategy(unsupported_fields=lambda _autoscaler: (_NOBODY,))

STRATEGIES: dict[type[Object], Strategy] = {
    v1.HorizontalPodAutoscaler: _STRATEGY,
    v2.HorizontalPodAutoscaler: _STRATEGY,
}
