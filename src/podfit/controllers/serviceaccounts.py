"""The service account controllers: `default` in each namespace, the ConfigMap with the CA, and components' accounts."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap, ServiceAccount
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

ACCOUNT = "default"
KUBE_SYSTEM = "kube-system"
CA_CONFIG_MAP = "kube-root-ca.crt"
_ABOUT = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using "
    "internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
    "distributions of Kubernetes clusters."
}
"""Upstream's words."""
TERMINATING = "NamespaceTerminating"


class _InEveryNamespace(Controller[str]):
    """Keys are namespaces, from the moment they are there until they are deleted."""

    def __init__(self, informers: Informers, *others: Informer[Any], clock: Clock) -> None:
        self._namespaces = informers.of(Namespace)
        super().__init__(clock, self._namespaces, *others)
        self._namespaces.add_handler(add=lambda new: self.queue.add(new.metadata.name))

    async def reconcile(self, key: str) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is not None and not namespace.metadata.deletion_timestamp:
            await self._complete(key)
        return None

    @abstractmethod
    async def _complete(self, namespace: str) -> None:
        """Give the namespace what it lacks."""


class DefaultAccounts(_InEveryNamespace):
    """The account `default`, for pods that name none. Nothing else has to be there first."""

    def __init__(self, client: Client, *, informers: Informers, clock: Clock) -> None:
        """`client` makes them, and can do no more."""
        self._client = client
        self._accounts = informers.of(ServiceAccount, fields=f"metadata.name={ACCOUNT}")
        super().__init__(informers, self._accounts, clock=clock)
        self._accounts.add_handler(delete=lambda old: self.queue.add(old.metadata.namespace))

    async def _complete(self, namespace: str) -> None:
        if self._accounts.get(ACCOUNT, namespace) is None:
            await _create(self._client, ServiceAccount(metadata=ObjectMeta(name=ACCOUNT, namespace=namespace)))


class RootCertificates(_InEveryNamespace):
    """The config map with the certificate of the cluster's authority, which pods mount."""

    def __init__(self, client: Client, *, informers: Informers, clock: Clock, ca: str) -> None:
        """`ca` is the certificate, PEM; `client` makes the config maps, and can do no more."""
        self._client = client
        self._ca = {"ca.crt": ca}
        self._maps = informers.of(ConfigMap, fields=f"metadata.name={CA_CONFIG_MAP}")
        super().__init__(informers, self._maps, clock=clock)
        self._maps.add_handler(
            update=lambda _, new: self.queue.add(new.metadata.namespace),
            delete=lambda old: self.queue.add(old.metadata.namespace),
        )

    async def _complete(self, namespace: str) -> None:
        current = self._maps.get(CA_CONFIG_MAP, namespace)
        if current is None:
            metadata = ObjectMeta(name=CA_CONFIG_MAP, namespace=namespace, annotations=_ABOUT)
            await _create(self._client, ConfigMap(metadata=metadata, data=self._ca))
        elif current.data != self._ca:
            await self._client.update(replace(current, data=self._ca))


class ControllerAccounts(Controller[str]):
    """The accounts that controllers act as, made where they are missing when the controllers start.

    Upstream's controller manager, told to use an account for each controller, makes them so: empty, as itself, and not
    again when one is deleted, which takes no right from a controller that runs.
    """

    def __init__(self, manager: Client, names: Iterable[str], *, clock: Clock) -> None:
        super().__init__(clock)
        self._manager = manager
        for name in names:
            self.queue.add(name)

    async def reconcile(self, key: str) -> float | None:
        try:
            await self._manager.get(ServiceAccount, key, KUBE_SYSTEM)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            account = ServiceAccount(metadata=ObjectMeta(name=key, namespace=KUBE_SYSTEM))
            await _create(self._manager, account)
        return None


async def _create(client: Client, obj: ServiceAccount | ConfigMap) -> None:
    try:
        await client.create(obj)
    except ApiError as error:
        reasons = [cause.get("reason") for cause in error.details.get("causes", ())]
        if error.reason != "AlreadyExists" and TERMINATING not in reasons:
            raise
