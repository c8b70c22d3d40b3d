"""The services of a pod's namespace, for its environment variables.

A simulated node runs nothing that could read them, and follows none.
"""

from collections.abc import Mapping

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.pod.service_variables import of_api_server, of_services
from podfit.kubelet.sources.lookup import Missing

NAMESPACE = "namespace"


def namespace_of(service: Service) -> tuple[str, ...]:
    return (service.metadata.namespace,)


class ServiceVariables:
    """`api_server` is the URL that every container is told. Services are known while it `run`s, if it is to `follow`
    them.
    """

    def __init__(self, client: Client, clock: Clock, *, api_server: str, follow: bool) -> None:
        self._of_api_server = of_api_server(api_server)
        self._services: Informer[Service] | None = None
        if follow:
            self._services = Informer(client, Service, clock=clock, indexes={NAMESPACE: namespace_of})

    async def run(self) -> None:
        """Follow them until cancelled."""
        if self._services is not None:
            await self._services.run()

    def of(self, pod: Pod, *, static: bool) -> Mapping[str, str]:
        """Raises Missing as long as the services have not been read; a static pod does not wait for an API server."""
        if self._services is None or pod.spec.enable_service_links is False:
            return self._of_api_server
        if not self._services.synced.is_set() and not static:
            raise Missing("services have not yet been read at least once, cannot construct envvars")
        return {**self._of_api_server, **of_services(self._services.by_index(NAMESPACE, pod.metadata.namespace))}
