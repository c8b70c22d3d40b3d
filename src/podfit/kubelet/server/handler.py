"""The kubelet's HTTP handler: health, pods, configuration, logs, metrics, exec and port-forward.

It is a wire handler. Who asks and whether they may is decided in front of it: over the network by `server.access`,
inside a process by whoever holds the handler. Either sets the request's identity; everything but health needs one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podfit.api.core.v1.pods.container_status import ContainerStatus as ContainerStatusTold
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.numbers import parse_int
from podfit.core.times import format_micro, parse_time, seconds_later
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus
from podfit.decide.pod.ephemeral_containers import every_container
from podfit.kubelet.pods.runtime_facts import observe
from podfit.kubelet.runtime.errors import CRIError, NotFound
from podfit.kubelet.runtime.logs import LogOptions, open_log, stream
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.server.streaming import Streaming
from podfit.kubelet.server.summary import Summary
from podfit.kubelet.server.usage import UsageMetrics
from podfit.net.metrics import CONTENT_TYPE, Metrics
from podfit.net.wire import Request, Response

_LOGS = re.compile(r"^/containerLogs/([^/]+)/([^/]+)/([^/]+)$")
_STREAMS = re.compile(r"^/(?:(exec|attach)/([^/]+)/([^/]+)/([^/]+)|portForward/([^/]+)/([^/]+))$")
NOT_FOUND = 'unable to upgrade connection: container not found ("{}")\n'
_WAITS_FOR_IMAGE = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}
_TRUE = ("1", "true", "True", "t")


class NodeServer:
    """Call it with a request. `pods` gives the pods of this node as they are shown: allocated, with their status."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        pods: Callable[[], Iterable[Pod]],
        metrics: Metrics,
        clock: Clock,
        healthy: Callable[[], bool],
        usage: UsageMetrics,
        summary: Summary,
        configuration: Callable[[], Mapping[str, Any]],
        simulated: bool,
    ) -> None:
        self._runtime = runtime
        self._streaming = Streaming(runtime, clock)
        self._pods = pods
        self._metrics = metrics
        self._clock = clock
        self._healthy = healthy
        self._usage = usage
        self._summary = summary
        self._configuration = configuration
        self._simulated = simulated

    async def __call__(self, request: Request) -> Response:
        if request.path in ("/healthz", "/healthz/ping", "/healthz/syncloop"):
            return _text(200, "ok") if self._healthy() else _text(500, "container runtime does not answer\n")
        if request.identity is None:
            return _text(401, "Unauthorized")
        logs = _LOGS.match(request.path)
        if request.method in ("GET", "POST") and (found := _STREAMS.match(request.path)) is not None:
            verb, namespace, name = found[1] or "", found[2] or found[5], found[3] or found[6]
            return await self._streamed(request, verb, namespace, name, found[4] or "")
        if request.method != "GET":
            return _text(405, "405: Method Not Allowed")
        if logs is not None:
            return await self._container_logs(request, *logs.groups())
        if request.path in ("/metrics", "/metrics/resource", "/metrics/cadvisor"):
            return await self._exposed(request.path)
        return await self._document(request.path.rstrip("/"))

    async def _document(self, path: str) -> Response:
        """What is told as JSON."""
        document: object
        match path:
            case "/pods":
                document = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(self._pods())}
            case "/configz":
                document = self._configuration()
            case "/stats/summary":
                try:
                    document = await self._summary.read()
                except CRIError as error:
                    return _text(500, f"{error}\n")
            case _:
                return _text(404, "404 page not found\n")
        return Response(200, {"content-type": "application/json"}, codec.encode(document))

    async def _streamed(self, request: Request, verb: str, namespace: str, name: str, container: str) -> Response:
        """exec, attach, and port-forward where the verb is empty."""
        pod = self._pod(namespace, name)
        if pod is None:
            return _text(404, f'pod "{name}" does not exist\n')
        try:
            hands = self._streaming.agree(request, verb)
        except ApiError as error:  # kubectl repeats by SPDY what was refused, and shows that answer
            if verb and not _runs(pod, container):
                return _text(404, NOT_FOUND.format(container))
            return _text(error.code, f"{error.message}\n")
        try:
            facts = await observe(self._runtime, pod.metadata.uid)
            if not verb:
                if facts.sandbox is None:
                    return _text(404, f'pod "{name}" has no sandbox that is ready\n')
                return self._streaming.port_forward(request, hands, pod.metadata.uid, facts.sandbox.id)
            running = next((instance.id for instance in facts.running if instance.name == container), "")
            if not running:
                return _text(404, NOT_FOUND.format(container))
            begin = self._streaming.exec if verb == "exec" else self._streaming.attach
            return begin(request, hands, pod.metadata.uid, running)
        except ApiError as error:
            return _text(error.code, f"{error.message}\n")
        except CRIError as error:
            return _text(500, f"{error}\n")

    def _pod(self, namespace: str, name: str) -> Pod | None:
        return next((p for p in self._pods() if (p.metadata.namespace, p.metadata.name) == (namespace, name)), None)

    async def _exposed(self, path: str) -> Response:
        try:
            match path:
                case "/metrics/resource":
                    body = await self._usage.resource()
                case "/metrics/cadvisor":
                    body = await self._usage.cadvisor()
                case _:
                    body = self._metrics.exposition()
        except CRIError as error:
            return _text(500, f"{error}\n")
        return Response(200, {"content-type": CONTENT_TYPE}, body)

    async def _container_logs(self, request: Request, namespace: str, name: str, container: str) -> Response:
        pod = self._pod(namespace, name)
        if pod is None:
            return _text(404, f'pod "{name}" does not exist\n')
        if container not in {declared.name for declared in every_container(pod)}:
            return _text(404, f'container "{container}" not found in pod "{name}"\n')
        try:
            options = _options(request, self._clock.now())
        except ValueError as error:
            return _text(400, f"{error}\n")
        try:
            instance = await self._instance(pod, container, previous=request.param("previous") in _TRUE)
        except CRIError as error:
            return _text(500, f"{error}\n")
        if isinstance(instance, str):
            return _text(400, instance)
        return await self._stream(instance, options)

    async def _stream(self, instance: ContainerStatus, options: LogOptions) -> Response:
        async def ended() -> bool:
            """While the runtime is down the container may run on, and its log is read on."""
            try:
                return (await self._runtime.container_status(instance.id)).state is not ContainerState.RUNNING
            except NotFound:
                return True
            except CRIError:
                return False

        if not instance.log_path:  # its runtime keeps no logs
            return Response(200, {"content-type": "text/plain"}, b"")
        try:
            if self._simulated:
                await self._runtime.reopen_container_log(instance.id)  # nothing has begun it
            open_log(Path(instance.log_path)).close()
        except FileNotFoundError:  # it has written nothing
            return Response(200, {"content-type": "text/plain"}, b"")
        except OSError as error:
            return _text(500, f"failed to open log file: {error.strerror}\n")
        except CRIError as error:
            return _text(500, f"{error}\n")
        body = stream(Path(instance.log_path), options, ended=ended, sleep=self._clock.sleep)
        return Response(200, {"content-type": "text/plain"}, body)

    async def _instance(self, pod: Pod, container: str, *, previous: bool) -> ContainerStatus | str:
        """The instance asked for, or why there is none."""
        facts = await observe(self._runtime, pod.metadata.uid)
        instances = [
            instance
            for instance in facts.containers
            if instance.name == container and instance.state is not ContainerState.CREATED
        ]
        if previous:
            text = f'previous terminated container "{container}" in pod "{pod.metadata.name}" not found'
            return instances[1] if len(instances) > 1 else text
        if instances:
            return instances[0]
        known = _statuses(pod)
        reason = next((s.state.waiting.reason for s in known if s.name == container and s.state.waiting), "")
        text = f'container "{container}" in pod "{pod.metadata.name}" is waiting to start: '
        return text + (_WAITS_FOR_IMAGE.get(reason) or reason or "no logs available")


def _runs(pod: Pod, container: str) -> bool:
    """Whether it runs by its last status, which costs nothing."""
    return any(status.name == container and status.state.running is not None for status in _statuses(pod))


def _statuses(pod: Pod) -> tuple[ContainerStatusTold, ...]:
    """The statuses of all its containers."""
    status = pod.status
    return (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)


def _options(request: Request, now: datetime) -> LogOptions:
    """Raises ValueError with a text for the caller."""
    since = ""
    if seconds := _number(request, "sinceSeconds"):
        since = format_micro(seconds_later(now, -seconds))
    elif request.param("sinceTime"):
        since = format_micro(parse_time(request.param("sinceTime")).astimezone(UTC))
    return LogOptions(
        follow=request.param("follow") in _TRUE,
        timestamps=request.param("timestamps") in _TRUE,
        tail=_number(request, "tailLines"),
        limit=_number(request, "limitBytes"),
        since=since,
    )


def _number(request: Request, name: str) -> int | None:
    text = request.param(name)
    if not text:
        return None
    number = parse_int(text)
    if number < 0:
        raise ValueError(f"{name}: {text!r} must be a whole number that is not negative")
    return number


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
