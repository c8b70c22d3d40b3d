"""Admission of connections: exec, attach, port-forward and proxies, told by their options (operation CONNECT).

Webhooks are asked before the pod, service or node is looked for, as upstream does, and what a mutating one makes of the
options is what is then done. Built-in plugins have no say: none of upstream's that podfit has is about CONNECT.
"""

from collections.abc import Sequence
from typing import Any

from podfit.api.core.v1.connect_options import (
    NodeProxyOptions,
    PodAttachOptions,
    PodExecOptions,
    PodPortForwardOptions,
    PodProxyOptions,
    ServiceProxyOptions,
)
from podfit.api.meta.base import Object
from podfit.apiserver.admission.chain import CONNECT, AdmissionChain
from podfit.apiserver.context import Attributes
from podfit.apiserver.handlers.options import whole_number
from podfit.apiserver.request.request_info import RequestInfo, flag, proxied_path
from podfit.core.errors import ApiError
from podfit.net.wire import Identity, Request

_PROXIES: dict[str, type[PodProxyOptions | ServiceProxyOptions | NodeProxyOptions]] = {
    "pods": PodProxyOptions,
    "services": ServiceProxyOptions,
    "nodes": NodeProxyOptions,
}
_STREAMS = ("stdin", "stdout", "stderr", "tty")


async def admitted(
    chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> tuple[Any, Sequence[str]]:
    """The options of the connection as admission leaves them, and what it warns of. Raises ApiError when it refuses."""
    assert request_info.info is not None
    attributes = Attributes(
        operation=CONNECT,
        info=request_info.info,
        subresource=request_info.subresource,
        namespace=request_info.namespace,
        name=request_info.name,
        identity=identity,
        dry_run=False,
    )
    try:
        options = await chain.mutate(attributes, _options(request_info, request))
        await chain.validate(attributes, options)
    except ApiError as error:
        error.warnings = (*attributes.reinvocations.warnings, *error.warnings)
        raise
    return options, attributes.reinvocations.warnings


def _options(request_info: RequestInfo, request: Request) -> Object:
    """As the query says them. Raises 400 for a port that is no number."""
    if request_info.subresource == "proxy":
        return _PROXIES[request_info.resource](path=proxied_path(request.path))
    if request_info.subresource == "portforward":
        return PodPortForwardOptions(ports=tuple(map(whole_number, request.query.get("ports", ()))))
    streams: dict[str, Any] = {name: flag(request, name) for name in _STREAMS}
    if request_info.subresource == "attach":
        return PodAttachOptions(container=request.param("container"), **streams)
    command = request.query.get("command") or None
    return PodExecOptions(container=request.param("container"), command=command, **streams)
