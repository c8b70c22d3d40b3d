"""The admission controller of `podfit vpa admission-controller`, a client of any cluster and a webhook of it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.controllers import ClientOf, Loop
from podfit.vpa.admission.controller import COMPONENT, AdmissionController, AdmissionSettings
from podfit.vpa.admission.webhook import Certificates, Webhook, WebhookOptions


def admission_loops(
    client_of: ClientOf,
    settings: AdmissionSettings,
    options: WebhookOptions,
    certificates: AbstractContextManager[Certificates],
    clock: Clock,
    metrics: Metrics,
) -> Iterator[Loop]:
    client = client_of(Identity(COMPONENT))
    controller = AdmissionController(client, clock=clock, settings=settings, metrics=metrics)
    yield controller.run()

    async def serve() -> None:
        with certificates as shown:
            await Webhook(controller.handle, client, clock, options, shown).run()

    yield serve()
