"""The Vertical Pod Autoscaler inside of `podfit up`: all three processes, with nothing to set up.

Until the first VPA is made, or a namespace asks for initial resources, it costs two watches: only then is NumPy loaded,
are pods and workloads followed, and is the API server told to ask about new pods. VPA objects are checked from the
start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from podfit import __version__
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.recommender.v1alpha1 import PodRecommendationStatus
from podfit.client.election import Election, LeaseTiming, NewerLease
from podfit.client.informer import Informer
from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.client.vpa_kinds import VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.initial import SELECTOR
from podfit.decide.autoscaling.published import IN_UP, LEASE
from podfit.process.control.apiserver import ApiServerComponent, LocalServices
from podfit.process.identities import ADMIN, agent, controller
from podfit.process.vpa.objects import install
from podfit.vpa.admission.controller import COMPONENT as ADMISSION
from podfit.vpa.admission.controller import AdmissionController
from podfit.vpa.admission.controller import AdmissionSettings as AdmissionSettings
from podfit.vpa.admission.registration import Registration, register
from podfit.vpa.recommender.pod_recommendations import PodRecommendationApi
from podfit.vpa.updater.settings import UpdaterSettings as UpdaterSettings
from podfit.vpa.updater.updater import COMPONENT as UPDATER
from podfit.vpa.updater.updater import Updater

if TYPE_CHECKING:
    from podfit.vpa.recommender.recommender import Recommender  # loads NumPy

log = logging.getLogger(__name__)
Need = Callable[..., Awaitable[None]]
GATES = IN_UP.gates
IDENTITY = "podfit-up"
"""Holder of the updater's Lease: the next `up` on this cluster is the same holder."""
RECOMMENDER = "vpa-recommender"
BEHIND, AGAIN = 5.0, 30.0
"""Seconds."""


class HistoryKept(NamedTuple):
    """Where, and how many MiB."""

    directory: Path
    size: int


class VpaInUp:
    """Its webhook is one of `services`, asked by a call; `need` imports modules beside the work."""

    def __init__(
        self,
        api: ApiServerComponent,
        services: LocalServices,
        clock: Clock,
        need: Need,
        usages: PodUsages,
        kept: HistoryKept | None = None,
    ) -> None:
        self._kept = kept
        self._handler, self._metrics, self._random = api.handler, api.metrics, api.random
        self._clock, self._need, self._usages = clock, need, usages
        self._admission = AdmissionController(
            self._client(ADMISSION),
            clock=clock,
            settings=AdmissionSettings(gates=GATES, asks=True),
            metrics=api.metrics,
        )
        self._installed = False
        webhook = Registration()
        services.offer(webhook.service_namespace, webhook.service, self._admission.handle)
        self._recommender: Recommender | None = None
        services.offer(webhook.service_namespace, RECOMMENDER, PodRecommendationApi(self._recommend))

    async def install(self) -> None:
        """Returns when VPAs are served, and checked. What speaks against it, such as a full disk, keeps no cluster from
        starting: `run` tries again.
        """
        try:
            await install(self._admin())
        except (ApiError, ConnectionError) as error:
            log.warning("VPAs are not served yet error=%s", error)
            return
        await self._register(pods=False)
        self._installed = True

    async def run(self) -> None:
        """Until cancelled."""
        while not self._installed:
            await self._clock.sleep(AGAIN)
            await self.install()
        await self._first()
        await self._need("podfit.process.vpa.recommender")
        from podfit.process.vpa.recommender import recommender_in_up, recorder_in  # loads NumPy

        settings = UpdaterSettings(rules=IN_UP)
        updater = Updater(self._client(UPDATER), clock=self._clock, settings=settings, metrics=self._metrics)
        recorder = recorder_in(*self._kept, self._clock, self._admin()) if self._kept is not None else None
        client, clock = self._client(RECOMMENDER), self._clock
        recommender = recommender_in_up(client, clock, self._metrics, GATES, self._usages, recorder)
        self._recommender = recommender
        async with asyncio.TaskGroup() as group:
            group.create_task(self._admission.run())
            group.create_task(recommender.run())
            group.create_task(self._after(updater.run()))
            group.create_task(self._publish(settings))
            await self._register(pods=True)

    async def _recommend(self, pod: Pod) -> PodRecommendationStatus | None:
        """Before there is a VPA there is nothing to recommend, and no recommender."""
        return await self._recommender.recommend_to(pod) if self._recommender is not None else None

    async def _after(self, work: Coroutine[Any, Any, None]) -> None:
        """Passes of the updater follow those of the recommender: else a pod would wait a minute more."""
        await self._clock.sleep(BEHIND)
        await work

    async def _publish(self, settings: UpdaterSettings) -> None:
        """Hold the updater's Lease, with what it runs with; a `podfit vpa updater` waits meanwhile. Whoever holds it
        already keeps it.
        """
        every = settings.interval
        pace = LeaseTiming(duration=3 * every, renew=2 * every, retry=every)
        told = settings.published().annotation()
        lease = Election(self._client(UPDATER), self._clock, name=LEASE, identity=IDENTITY, pace=pace, told=told)
        while True:
            try:
                await lease.hold()
            except NewerLease as error:
                log.warning("what the updater runs with is not published error=%s", error)
            await self._clock.sleep(every)

    async def _first(self) -> None:
        """Return when there is a VPA, or a namespace that asks for initial resources."""
        there = asyncio.Event()
        vpas = Informer(self._client(UPDATER), VPAS, clock=self._clock)
        namespaces = Informer(self._client(RECOMMENDER), Namespace, clock=self._clock, labels=SELECTOR)
        for informer in (vpas, namespaces):
            informer.add_handler(add=lambda _: there.set())
        async with asyncio.TaskGroup() as group:
            following = [group.create_task(informer.run()) for informer in (vpas, namespaces)]
            await there.wait()
            for task in following:
                task.cancel()

    async def _register(self, *, pods: bool) -> None:
        try:
            await register(self._client(ADMISSION), Registration(pods=pods), b"")
        except ApiError as error:
            log.warning("the VPA's webhook is not registered error=%s", error)

    def _admin(self) -> Client:
        return Client(Local(self._handler, ADMIN), user_agent=agent(ADMIN), random=self._random)

    def _client(self, account: str) -> Client:
        identity, user_agent = controller(account), f"{account}/{__version__}"
        return Client(Local(self._handler, identity), user_agent=user_agent, random=self._random)
