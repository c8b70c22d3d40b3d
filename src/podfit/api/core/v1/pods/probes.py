"""Probes and lifecycle hooks of a container."""

from podfit.api.meta.base import IntOrString, Struct, always


class ExecAction(Struct):
    command: tuple[str, ...] = ()


class GRPCAction(Struct):
    port: int = always(default=0)
    service: str | None = None


class HTTPHeader(Struct):
    name: str = always(default="")
    value: str = always(default="")


class HTTPGetAction(Struct):
    host: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()
    path: str = ""
    port: IntOrString = always(default=0)
    scheme: str = ""


class TCPSocketAction(Struct):
    host: str = ""
    port: IntOrString = always(default=0)


class Probe(Struct):
    exec: ExecAction | None = None
    failure_threshold: int = 0
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int = 0


class SleepAction(Struct):
    seconds: int = always(default=0)


class LifecycleHandler(Struct):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Struct):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""
