"""Strategies of networking.k8s.io: objects that podfit keeps and checks, and nothing of its own acts on."""

from podfit.api.meta.base import Object
from podfit.api.networking.v1.types import Ingress, NetworkPolicy
from podfit.apiserver.registry.strategies.strategy import Strategy

_INGRESS = "podfit runs no ingress controller: nothing answers for an Ingress until you run one"
_POLICY = "podfit's nodes do not enforce a NetworkPolicy: pods share their node's network"

STRATEGIES: dict[type[Object], Strategy] = {
    Ingress: Strategy(unsupported_fields=lambda _ingress: (_INGRESS,)),
    NetworkPolicy: Strategy(unsupported_fields=lambda _policy: (_POLICY,)),
}
