"""The admission controller of `podfit vpa admission-controller`, a client of any cluster and a webhook of it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.control.controllers import ClientOf, Loop
from podfit.vpa.admission.controller import COMPONENT as ADMISSION
from podfit.vpa.admission.controller import AdmissionController, AdmissionSettings
from podfit.vpa.admission.webhook import Webhook, WebhookOptions
from podfit.vpa.certificates import Certificates
from podfit.vpa.progress import Passes
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import COMPONENT as UPDATER
from podfit.vpa.updater.updater import Updater


def updater_loops(
    client_of: ClientOf, settings: UpdaterSettings, clock: Clock, metrics: Metrics, passes: Passes
) -> Iterator[Loop]:
    client = client_of(Identity(UPDATER))
    yield Updater(client, clock=clock, settings=settings, metrics=metrics, passed=passes.done).run()


def admission_loops(
    client_of: ClientOf,
    settings: AdmissionSettings,
    options: WebhookOptions,
    certificates: AbstractContextManager[Certificates],
    clock: Clock,
    metrics: Metrics,
) -> Iterator[Loop]:
    client = client_of(Identity(ADMISSION))
    controller = AdmissionController(client, clock=clock, settings=settings, metrics=metrics)
    yield controller.run()

    async def serve() -> None:
        with certificates as shown:
            await Webhook(controller.handle, client, clock, options, shown).run()

    yield serve()
