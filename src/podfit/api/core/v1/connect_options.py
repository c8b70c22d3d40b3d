"""Options of connections to pods, services and nodes: what admission sees of a CONNECT. They are never stored."""

from podfit.api.meta.base import Object, always


class PodExecOptions(Object):
    kind: str = always(default="PodExecOptions")
    api_version: str = always(default="v1")
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""
    command: tuple[str, ...] | None = always(default=None)


class PodAttachOptions(Object):
    kind: str = always(default="PodAttachOptions")
    api_version: str = always(default="v1")
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""


class PodPortForwardOptions(Object):
    kind: str = always(default="PodPortForwardOptions")
    api_version: str = always(default="v1")
    ports: tuple[int, ...] = ()


class PodProxyOptions(Object):
    """`path` is what is asked of the other side, with its slash."""

    kind: str = always(default="PodProxyOptions")
    api_version: str = always(default="v1")
    path: str = ""


class ServiceProxyOptions(Object):
    kind: str = always(default="ServiceProxyOptions")
    api_version: str = always(default="v1")
    path: str = ""


class NodeProxyOptions(Object):
    kind: str = always(default="NodeProxyOptions")
    api_version: str = always(default="v1")
    path: str = ""
