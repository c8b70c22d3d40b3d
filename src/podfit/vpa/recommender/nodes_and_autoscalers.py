"""Informers of nodes and HorizontalPodAutoscalers, as far as RBAC lets the recommender read them."""

from typing import Any

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.core.v1.nodes.types import Node
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.autoscaling.nodes_and_autoscalers import Around, held_resources, kept_points, largest


class NodesAndAutoscalers:
    """Nobody waits until its informers are synced."""

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self._nodes = Informer(client, Node, clock=clock)
        self._autoscalers = Informer(client, HorizontalPodAutoscaler, clock=clock, namespace=namespace)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return self._nodes, self._autoscalers

    def now(self) -> Around:
        autoscalers = self._autoscalers.list()
        return Around(largest(self._nodes.list()), held_resources(autoscalers), kept_points(autoscalers))
