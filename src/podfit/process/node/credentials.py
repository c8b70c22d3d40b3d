"""Node credentials: with a bootstrap kubeconfig a machine requests a client certificate, and keeps it in a kubeconfig
that is rewritten on renewal.
"""

import ssl
from pathlib import Path

from msgspec.structs import replace

from podfit.client import kubeconfig_edit
from podfit.client.certificates import CertificateManager, Declined, obtain
from podfit.client.kubeconfig import Access, KubeconfigError, load
from podfit.client.rest import Client
from podfit.client.transport import Https
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.certificates import NODE, NODE_CLIENT, NODES
from podfit.net.certificate_requests import Names, Pair, life_of
from podfit.net.http_client import HttpsClient
from podfit.net.tls import client_context, show
from podfit.process.access import CONTEXT
from podfit.process.errors import MachineError, UsageError
from podfit.process.foreground import Announce

DEAD_SECONDS = 20.0
"""A server that acknowledges nothing for so long is asked anew, so a node that was cut off soon catches up."""


async def node_access(name: str, kubeconfig: Path, bootstrap: Path | None, clock: Clock, announce: Announce) -> Access:
    """What `kubeconfig` says while it is good, else what the bootstrap kubeconfig gets. Raises ClusterError."""
    known = _known(kubeconfig)
    if known is not None and _good(known, clock):
        return known
    if bootstrap is None:
        why = "holds a certificate that is over" if known is not None else "is not there"
        raise UsageError(
            f"--kubeconfig: {kubeconfig} {why}; join the cluster with --bootstrap-kubeconfig FILE (podfit token create)"
        )
    first = load([bootstrap])
    client = first.client(user_agent="kubelet")
    try:
        pair = await obtain(
            client,
            clock,
            signer=NODE_CLIENT,
            use="client",
            names=names_of(name),
            waiting=lambda request: announce(f"  join      {request} at {first.server} waits for approval"),
        )
    except (ApiError, ConnectionError, Declined, TimeoutError) as error:
        raise MachineError(
            f"node {name} cannot join {first.server}: {error}",
            fix=("is the token still good?  podfit token create", "podfit controllers approves and signs"),
        ) from error
    finally:
        await client.close()
    access = replace(first, certificate=pair.certificate, key=pair.key, token="", token_file=None, plugin=None)
    keep(name, kubeconfig, access)
    return access


def _known(kubeconfig: Path) -> Access | None:
    return load([kubeconfig]) if kubeconfig.exists() else None


def names_of(name: str) -> Names:
    return Names(NODE + name, (NODES,))


def keep(name: str, kubeconfig: Path, access: Access) -> None:
    """Keeps it as the current context, beside whatever else the file holds; with mode 0600, for it holds the node's
    key."""
    kubeconfig_edit.merge(kubeconfig, CONTEXT, access, owner=names_of(name).user, switch=True)


class NodeClient:
    """The node's client of the API. `renewal` keeps its certificate good, where it has one."""

    def __init__(self, name: str, access: Access, kubeconfig: Path) -> None:
        if access.plugin is not None:
            raise KubeconfigError(f"{kubeconfig}: a node signs in with a certificate or a token, not with exec")
        self.access, self._name, self._kubeconfig = access, name, kubeconfig
        self._tls: ssl.SSLContext = client_context(
            authorities=access.authorities, certificate=access.certificate, key=access.key, verify=access.verify
        )
        token = access.read_token if access.token or access.token_file else None
        self._http = HttpsClient(access.server, self._tls, token=token, reach=access.reach, dead_after=DEAD_SECONDS)
        self.client = Client(Https(self._http), user_agent="kubelet")

    def renewal(self, clock: Clock) -> CertificateManager | None:
        """None for a node that shows no certificate."""
        if self.access.certificate is None or self.access.key is None:
            return None
        return CertificateManager(
            self.client,
            clock,
            signer=NODE_CLIENT,
            use="client",
            names=names_of(self._name),
            pair=Pair(self.access.certificate, self.access.key),
            changed=self._changed,
        )

    async def _changed(self, pair: Pair) -> None:
        """Connections that were opened with the old certificate end; whoever used them asks again."""
        self.access = replace(self.access, certificate=pair.certificate, key=pair.key)
        keep(self._name, self._kubeconfig, self.access)
        show(self._tls, pair.certificate, pair.key)
        await self._http.close()

    async def close(self) -> None:
        await self.client.close()


def _good(access: Access, clock: Clock) -> bool:
    if access.certificate is None:
        return True
    try:
        life = life_of(access.certificate)
    except ValueError:
        return False
    return life.begins <= clock.now() < life.ends
