"""`RequestInfo`: verb, group, version, resource, namespace and name of a request, from its method and path."""

from collections.abc import Callable

import msgspec

from podfit.api.meta.resource_info import ResourceInfo, Subresource
from podfit.api.registry import find
from podfit.net.wire import Request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
WATCH = "watch"


Find = Callable[[str, str, str], ResourceInfo | None]


class RequestInfo(msgspec.Struct, frozen=True):
    """A request for a resource. `info` is None for a resource that this server does not have. `by_path` is a watch by
    its old path, `/api/v1/watch/…`, which can be of one object."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    info: ResourceInfo | None = None
    by_path: bool = False

    @property
    def sub(self) -> Subresource | None:
        """The declaration of the subresource that is asked for."""
        if not self.subresource:
            return None
        for declared in self.info.subresources if self.info else ():
            if declared.name == self.subresource:
                return declared
        return None


def request_info_of(request: Request, declared: Find = lambda *_: None) -> RequestInfo | None:
    """The resource that a request is about; None for other paths, such as /healthz or discovery. `declared` finds what
    is not built in."""
    parts = request.path.strip("/").split("/")
    if "" in parts:
        parts = [part for part in parts if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    by_path = rest[0] == WATCH and len(rest) > 1
    if by_path:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "")[:3] if len(rest) <= 3 else (rest[0], rest[1], "/".join(rest[2:]))
    if subresource.startswith("proxy/"):  # what follows is the other side's path
        subresource = "proxy"
    info = find(group, version, resource) or declared(group, version, resource)
    head = request.path.removesuffix(proxied_path(request.path)) if subresource == "proxy" else request.path
    if info is not None and ((namespace and not info.namespaced) or "//" in head):
        info = None
    verb = WATCH if by_path else _verb(request, name, subresource)
    return RequestInfo(verb, group, version, resource, namespace, name, subresource, info, by_path)


def proxied_path(path: str) -> str:
    """What follows `proxy` in the path of such a request, with its slash: the other side's path. Empty without one."""
    parts = path.lstrip("/").split("/")
    rest = parts[7 if parts[2:3] == ["namespaces"] else 5 :]
    return "/" + "/".join(rest) if rest else ""


def asks_to_watch(request: Request) -> bool:
    """Whether the query says so; an object that is read by its name is read all the same."""
    return WATCH in request.query and flag(request, WATCH)


def flag(request: Request, name: str) -> bool:
    """A yes or no in a query: anything that is there means yes but `false` and `0`."""
    values = request.query.get(name, ())
    return bool(values) and values[0] != "0" and values[0].lower() != "false"


def _verb(request: Request, name: str, subresource: str) -> str:
    if request.method in ("GET", "HEAD"):
        if subresource != "proxy" and asks_to_watch(request) and (subresource or not name):
            return WATCH
        return "get" if name else "list"
    if request.method == "DELETE":
        return "delete" if name else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())
