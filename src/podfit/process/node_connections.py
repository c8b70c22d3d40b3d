"""How the API server reaches kubelets: those in its own process by a call, all others over HTTPS."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from podfit.apiserver.context import Context
from podfit.net.authority import Authority
from podfit.net.wire import Handler

if TYPE_CHECKING:
    from podfit.apiserver.node_dialer import NodeDialer

CLIENT = "apiserver-kubelet-client"


class NodeConnections:
    """A `NodeConnection`. `local` gives the handler of a node in this process. The client certificate for the others,
    and the HTTP library, are not made before the first of them is asked.
    """

    def __init__(
        self, context: Context, authority: Authority, *, local: Callable[[str], Handler | None] = lambda _: None
    ) -> None:
        self._context, self._authority, self._local = context, authority, local

    def __call__(self, name: str) -> Handler:
        return self._local(name) or self._dialer(name)

    @cached_property
    def _dialer(self) -> "NodeDialer":
        from podfit.apiserver.handlers.subresources.node_proxy import KUBELET_CLIENT
        from podfit.apiserver.housekeeping.extension import Proof
        from podfit.apiserver.node_dialer import NodeDialer

        pair = self._authority.client(CLIENT, user=KUBELET_CLIENT.user)
        return NodeDialer(self._context, Proof(pair.certificate, pair.key), self._authority.certificate)

    async def close(self) -> None:
        if "_dialer" in self.__dict__:
            await self._dialer.close()
