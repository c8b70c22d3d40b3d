"""Connections to kubelets: those in this process by a call, all others over HTTPS."""

from collections.abc import Callable
from functools import cached_property

from podfit.apiserver.context import KUBELET_CLIENT, Context
from podfit.apiserver.housekeeping.extension_authentication import ProxyCertificate
from podfit.apiserver.node_dialer import NodeDialer
from podfit.net.authority import Authority
from podfit.net.wire import Handler

CLIENT = "apiserver-kubelet-client"


class NodeConnections:
    """A `NodeConnection`. `local` gives the handler of a node in this process. The client certificate for the others is
    not made before the first of them is asked.
    """

    def __init__(
        self, context: Context, authority: Authority, *, local: Callable[[str], Handler | None] = lambda _: None
    ) -> None:
        self._context, self._authority, self._local = context, authority, local

    def __call__(self, name: str) -> Handler:
        return self._local(name) or self._dialer(name)

    @cached_property
    def _dialer(self) -> NodeDialer:
        pair = self._authority.client(CLIENT, user=KUBELET_CLIENT.user)
        return NodeDialer(self._context, ProxyCertificate(pair.certificate, pair.key), self._authority.certificate)

    async def close(self) -> None:
        if "_dialer" in self.__dict__:
            await self._dialer.close()
