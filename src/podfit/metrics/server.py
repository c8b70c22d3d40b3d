"""The metrics-server without sockets: reads kubelets by `ask`, and serves the wire handler `api`."""

import asyncio

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.metrics.points import Points
from podfit.metrics.running_pods import RUNNING, Pods, RunningPods
from podfit.metrics.scraper import Ask, Scraper, ScrapeSettings
from podfit.metrics.serving import MetricsApi
from podfit.net.metrics import Metrics

SELECTED = f"status.phase={RUNNING}"


def placed(pod: Pod) -> Pod:
    """What is asked about a pod here: which it is, and where."""
    of = pod.metadata
    meta = ObjectMeta(
        name=of.name, namespace=of.namespace, uid=of.uid, resource_version=of.resource_version, labels=of.labels
    )
    return Pod(metadata=meta, spec=PodSpec(node_name=pod.spec.node_name))


class MetricsServer:
    """`nodes` selects by labels whom it asks. `informers` are shared with others, who run them; without them it follows
    no more of pods than it needs."""

    def __init__(
        self,
        client: Client,
        ask: Ask,
        *,
        clock: Clock,
        settings: ScrapeSettings,
        metrics: Metrics,
        nodes: str = "",
        informers: Informers | None = None,
    ) -> None:
        self._nodes = Informer(client, Node, clock=clock, labels=nodes)
        self._own = informers is None
        self._pods = (
            Informer(client, Pod, clock=clock, fields=SELECTED, keep=placed) if informers is None else informers.of(Pod)
        )
        pods: Pods = self._pods if self._own else RunningPods(self._pods)
        self._points = Points(settings.interval)
        self._scraper = Scraper(self._nodes, pods, ask, self._points, clock=clock, settings=settings, metrics=metrics)
        self.api = MetricsApi(self._points, pods, self._nodes, clock=clock)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            if self._own:
                group.create_task(self._pods.run())
            group.create_task(self._scraper.run())

    @property
    def alive(self) -> bool:
        return self._scraper.alive

    @property
    def ready(self) -> bool:
        """Whether it knows its pods and nodes, and has something to tell."""
        return self._pods.synced.is_set() and self._nodes.synced.is_set() and self._points.has_nodes
