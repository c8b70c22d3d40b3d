"""Informers of nodes and HorizontalPodAutoscalers, as far as RBAC lets the recommender read them."""

from typing import Any

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.base import ResourceList
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.autoscaling.nodes_and_autoscalers import held_resources, largest


class Surroundings:
    """Nobody waits until its informers are synced."""

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self._nodes = Informer(client, Node, clock=clock)
        self._autoscalers = Informer(client, HorizontalPodAutoscaler, clock=clock, namespace=namespace)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return self._nodes, self._autoscalers

    def largest(self) -> ResourceList:
        return largest(self._nodes.list())

    def held(self, vpa: VerticalPodAutoscaler) -> dict[str, str]:
        """By resource the HPA that scales its target on it."""
        namespace = vpa.metadata.namespace
        return held_resources(self._autoscalers.list(namespace), namespace, vpa.spec.target_ref)
