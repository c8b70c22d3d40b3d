"""Where proxied pods and services are: `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT` as a URL of scheme, address and port.

By the rules of upstream. Only addresses of pods are dialled: of a service those behind it that are its pods', and never
loopback, link-local or multicast ones, so that nobody has the API server's own neighbours asked in its name.
"""

from typing import TypeVar

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import EndpointAddress, Endpoints, Service
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.backends import joined
from podfit.apiserver.registry.stored import Stored
from podfit.core.errors import ApiError, bad_request
from podfit.decide.node.addresses import is_reachable
from podfit.decide.node.simulated import SIMULATED

T = TypeVar("T")

SCHEMES = {"": 80, "http": 80, "https": 443}
MOST_PORT = 65535
NOT_REACHED = "error trying to reach service: {}"


class Named(msgspec.Struct, frozen=True):
    """What the name in the path of a request says."""

    scheme: str
    name: str
    port: str

    @classmethod
    def of(cls, kind: str, text: str) -> "Named":
        """Raises 400 for another form."""
        parts = text.split(":")
        if len(parts) < 3:
            parts.insert(0, "")
        scheme, name, port, *more = *parts, ""
        if any(more) or len(parts) > 3 or not name or scheme not in SCHEMES:
            raise bad_request(f'invalid {kind} request "{text}"')
        return cls(scheme, name, port)


async def pod_url(context: Context, namespace: str, asked: str) -> str:
    """Raises 400 or 404, and 503 for a port that is none."""
    named = Named.of("pod", asked)
    pod = await Stored[Pod](context.store, info_for(Pod)).get(namespace, named.name)
    if not is_reachable(pod.status.pod_ip):
        raise bad_request("address not allowed")
    await _check_runs(context, pod)
    return _url(named.scheme, pod.status.pod_ip, named.port or _first_port(pod))


async def service_url(context: Context, namespace: str, asked: str) -> str:
    """Raises 400, 404, or 503 where nobody is behind that port."""
    named = Named.of("service", asked)
    service = await Stored[Service](context.store, info_for(Service)).get(namespace, named.name)
    port = _name_of_port(service, named)
    endpoints = await context.find(Endpoints, named.name, namespace)
    subsets = endpoints.subsets if endpoints is not None else ()
    if not subsets:
        raise unavailable(f'no endpoints available for service "{named.name}"')
    for subset in _from_anywhere(context, subsets):
        for number in [known.port for known in subset.ports if known.name == port][:1]:
            for address in _from_anywhere(context, subset.addresses):
                pod = await _pod_at(context, namespace, address)
                if pod is not None and is_reachable(address.ip):
                    await _check_runs(context, pod)
                    return _url(named.scheme, address.ip, str(number))
    raise unavailable(f'no endpoints available for service "{asked}"')


def _name_of_port(service: Service, named: Named) -> str:
    """Ports of endpoints go by the names of the service's."""
    if not named.port.isdecimal():
        return named.port
    found = next((port for port in service.spec.ports if str(port.port) == named.port.lstrip("0")), None)
    if found is None:
        raise unavailable(f'no service port {named.port} found for service "{named.name}"')
    return found.name


def _from_anywhere(context: Context, items: tuple[T, ...]) -> tuple[T, ...]:
    """All of them in their order, begun at random: the load is for all."""
    start = context.random.below(len(items)) if items else 0
    return (*items[start:], *items[:start])


async def _pod_at(context: Context, namespace: str, address: EndpointAddress) -> Pod | None:
    """The pod of this namespace whose address it is."""
    ref = address.target_ref
    if ref is None or ref.namespace != namespace:
        return None
    pod = await context.find(Pod, ref.name, namespace)
    return pod if pod is not None and address.ip in [known.ip for known in pod.status.pod_ips] else None


async def _check_runs(context: Context, pod: Pod) -> None:
    """On a simulated node somebody else would answer, at the address of this machine."""
    node = await context.find(Node, pod.spec.node_name) if pod.spec.node_name else None
    if node is not None and SIMULATED in node.metadata.labels:
        text = f"pods of the simulated node {node.metadata.name} run nothing"
        raise unavailable(NOT_REACHED.format(text))


def _first_port(pod: Pod) -> str:
    return next((str(port.container_port) for container in pod.spec.containers for port in container.ports), "")


def _url(scheme: str, address: str, port: str) -> str:
    if port and not (port.isdecimal() and port.isascii() and len(port) < 7 and 0 < int(port) <= MOST_PORT):
        raise unavailable(NOT_REACHED.format(f"dial tcp: lookup tcp/{port}: unknown port"))
    return f"{scheme or 'http'}://{joined((address, int(port) if port else SCHEMES[scheme]))}"


def unavailable(text: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", text)
