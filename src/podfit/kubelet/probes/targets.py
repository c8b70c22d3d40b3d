"""Targets of httpGet and tcpSocket actions: address, port, headers."""

from collections.abc import Iterable

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.probes import HTTPGetAction
from podfit.api.meta.base import IntOrString
from podfit.kubelet.runtime.container_network import Failed

Headers = tuple[tuple[str, str], ...]


def port_of(container: Container, port: IntOrString) -> int:
    """A number, or the name of one of the container's ports. Raises Failed."""
    number = port
    if isinstance(port, str):
        named = [declared.container_port for declared in container.ports if declared.name == port]
        if not named and not port.isdecimal():
            raise Failed(f"couldn't find port: {port}")
        number = named[0] if named else int(port)
    if not isinstance(number, int) or not 0 < number < 65536:
        raise Failed(f"invalid port number: {number}")
    return number


def url_of(container: Container, action: HTTPGetAction, host: str) -> str:
    """`host` is the pod's address, where the action names none. Raises Failed."""
    place = action.host or host
    place = f"[{place}]" if ":" in place else place
    path = action.path if action.path.startswith("/") else f"/{action.path}"
    return f"{(action.scheme or 'HTTP').lower()}://{place}:{port_of(container, action.port)}{path}"


def headers_of(action: HTTPGetAction, *, agent: str) -> Headers:
    """The action's own; ours where it says nothing. One that it empties is not sent."""
    own = [(header.name, header.value) for header in action.http_headers]
    named = {name.lower() for name, _ in own}
    ours = ((name, text) for name, text in (("User-Agent", agent), ("Accept", "*/*")) if name.lower() not in named)
    return (*ours, *_said(own))


def _said(headers: Iterable[tuple[str, str]]) -> Headers:
    return tuple((name, text) for name, text in headers if text or name.lower() not in ("user-agent", "accept"))
