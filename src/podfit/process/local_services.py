"""In-process services: webhooks and APIServices of components in the API server's own process are reached by a call."""

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.net.wire import Handler


class LocalServices:
    def __init__(self) -> None:
        self._handlers: dict[tuple[str, str], Handler] = {}

    def offer(self, namespace: str, name: str, handler: Handler) -> None:
        """From now on this handler answers for the service."""
        self._handlers[namespace, name] = handler

    def find(self, reference: ServiceReference) -> Handler | None:
        return self._handlers.get((reference.namespace, reference.name))
