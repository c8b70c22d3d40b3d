"""Service accounts that nobody asks for: `default` in each namespace, with the CA certificate, and the controllers'."""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.core.config import ConfigMap, ServiceAccount
from podfit.api.core.namespaces import Namespace
from podfit.api.meta import ObjectMeta
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

ACCOUNT = "default"
KUBE_SYSTEM = "kube-system"
CA_CONFIG_MAP = "kube-root-ca.crt"
TERMINATING = "NamespaceTerminating"


class NamespaceContents(Controller[str]):
    """`shared` reads; `accounts` and `certificates` are who make the one and the other, and can do no more."""

    def __init__(self, shared: Client, *, accounts: Client, certificates: Client, clock: Clock, ca: str) -> None:
        """`ca` is the certificate, PEM."""
        self._accounts_client, self._certificates_client = accounts, certificates
        self._ca = {"ca.crt": ca}
        self._namespaces = Informer(shared, Namespace, clock=clock)
        self._accounts = Informer(shared, ServiceAccount, clock=clock, fields=f"metadata.name={ACCOUNT}")
        self._maps = Informer(shared, ConfigMap, clock=clock, fields=f"metadata.name={CA_CONFIG_MAP}")
        super().__init__(clock, self._namespaces, self._accounts, self._maps)
        self._namespaces.add_handler(add=lambda new: self.queue.add(new.metadata.name))
        self._accounts.add_handler(delete=lambda old: self.queue.add(old.metadata.namespace))
        self._maps.add_handler(
            update=lambda _, new: self.queue.add(new.metadata.namespace),
            delete=lambda old: self.queue.add(old.metadata.namespace),
        )

    async def reconcile(self, key: str) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp:
            return None
        current = self._maps.get(CA_CONFIG_MAP, key)
        if current is None:
            metadata = ObjectMeta(name=CA_CONFIG_MAP, namespace=key)
            await _create(self._certificates_client, ConfigMap(metadata=metadata, data=self._ca))
        elif current.data != self._ca:
            await self._certificates_client.update(replace(current, data=self._ca))
        if self._accounts.get(ACCOUNT, key) is None:  # last: with it pods are let in, and they mount the certificate
            account = ServiceAccount(metadata=ObjectMeta(name=ACCOUNT, namespace=key))
            await _create(self._accounts_client, account)
        return None


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
