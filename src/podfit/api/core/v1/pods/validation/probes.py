"""Probes, hooks, and the actions they share."""

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.probes import (
    ExecAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
    TCPSocketAction,
)
from podfit.api.meta.base import IntOrString
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import nonnegative
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported

_TIMES = (
    ("initial_delay_seconds", "initialDelaySeconds"),
    ("timeout_seconds", "timeoutSeconds"),
    ("period_seconds", "periodSeconds"),
    ("success_threshold", "successThreshold"),
    ("failure_threshold", "failureThreshold"),
)
_REAL_TIME = (
    *(f"SIGRTMIN+{number}" for number in range(1, 16)),
    *(f"SIGRTMAX-{number}" for number in range(1, 15)),
    "SIGRTMIN",
    "SIGRTMAX",
)
_SIGNALS = {
    "linux": tuple(
        sorted(
            (
                "SIGABRT",
                "SIGALRM",
                "SIGBUS",
                "SIGCHLD",
                "SIGCLD",
                "SIGCONT",
                "SIGFPE",
                "SIGHUP",
                "SIGILL",
                "SIGINT",
                "SIGIO",
                "SIGIOT",
                "SIGKILL",
                "SIGPIPE",
                "SIGPOLL",
                "SIGPROF",
                "SIGPWR",
                "SIGQUIT",
                "SIGSEGV",
                "SIGSTKFLT",
                "SIGSTOP",
                "SIGSYS",
                "SIGTERM",
                "SIGTRAP",
                "SIGTSTP",
                "SIGTTIN",
                "SIGTTOU",
                "SIGURG",
                "SIGUSR1",
                "SIGUSR2",
                "SIGVTALRM",
                "SIGWINCH",
                "SIGXCPU",
                "SIGXFSZ",
                *_REAL_TIME,
            )
        )
    ),
    "windows": ("SIGKILL", "SIGTERM"),
}


def validate_probes(container: Container, path: str) -> list[FieldError]:
    liveness, readiness, startup = container.liveness_probe, container.readiness_probe, container.startup_probe
    errors = _probe(liveness, f"{path}.livenessProbe") + _single_success(liveness, f"{path}.livenessProbe")
    errors += _probe(readiness, f"{path}.readinessProbe")
    if readiness is not None and readiness.termination_grace_period_seconds is not None:
        where = f"{path}.readinessProbe.terminationGracePeriodSeconds"
        grace = readiness.termination_grace_period_seconds
        errors.append(invalid(where, grace, "must not be set for readinessProbes"))
    return errors + _probe(startup, f"{path}.startupProbe") + _single_success(startup, f"{path}.startupProbe")


def _single_success(probe: Probe | None, path: str) -> list[FieldError]:
    if probe is None or probe.success_threshold == 1:
        return []
    return [invalid(f"{path}.successThreshold", probe.success_threshold, "must be 1")]


def _probe(probe: Probe | None, path: str) -> list[FieldError]:
    if probe is None:
        return []
    errors = _handlers(probe, path)
    for attribute, name in _TIMES:
        errors += nonnegative(getattr(probe, attribute), f"{path}.{name}")
    grace = probe.termination_grace_period_seconds
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    return errors


def _handlers(given: Probe | LifecycleHandler, path: str, grace: int | None = None) -> list[FieldError]:
    """Exactly one; a second one is refused, and not looked into."""
    errors: list[FieldError] = []
    found = 0
    for attribute, name in (
        ("exec", "exec"),
        ("http_get", "httpGet"),
        ("tcp_socket", "tcpSocket"),
        ("grpc", "grpc"),
        ("sleep", "sleep"),
    ):
        action = getattr(given, attribute, None)
        if action is None:
            continue
        found += 1
        if found > 1:
            errors.append(forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
        elif isinstance(action, ExecAction):
            errors += [] if action.command else [required(f"{path}.exec.command")]
        elif isinstance(action, HTTPGetAction):
            errors += _http_get(action, f"{path}.httpGet")
        elif isinstance(action, TCPSocketAction):
            errors += port(action.port, f"{path}.tcpSocket.port")
        elif name == "grpc":
            errors += port(action.port, f"{path}.grpc.port")
        elif grace is not None and not 0 <= action.seconds <= grace:
            text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            errors.append(invalid(f"{path}.sleep", action.seconds, text))
    return errors if found else [required(path, "must specify a handler type")]


def _http_get(action: HTTPGetAction, path: str) -> list[FieldError]:
    errors = [] if action.path else [required(f"{path}.path")]
    errors += port(action.port, f"{path}.port")
    if action.scheme not in ("HTTP", "HTTPS"):
        errors.append(unsupported(f"{path}.scheme", action.scheme, ("HTTP", "HTTPS")))
    for header in action.http_headers:
        errors += [invalid(f"{path}.httpHeaders", header.name, text) for text in names.header(header.name)]
    return errors


def port(value: IntOrString, path: str) -> list[FieldError]:
    problems = names.port_number(value) if isinstance(value, int) else names.port_name(value)
    return [invalid(path, value, text) for text in problems]


def validate_lifecycle(
    lifecycle: Lifecycle | None, path: str, *, grace: int | None, os: str | None
) -> list[FieldError]:
    """`grace` is the time the pod has to end, `os` the name of its operating system if it says one."""
    if lifecycle is None:
        return []
    errors = []
    for hook, name in ((lifecycle.post_start, "postStart"), (lifecycle.pre_stop, "preStop")):
        if hook is not None:
            errors += _handlers(hook, f"{path}.{name}", grace)
    if lifecycle.stop_signal:
        errors += _stop_signal(lifecycle.stop_signal, f"{path}.stopSignal", os)
    return errors


def _stop_signal(signal: str, path: str, os: str | None) -> list[FieldError]:
    if os is None:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    supported = _SIGNALS.get(os)
    return [] if supported is None or signal in supported else [unsupported(path, signal, supported)]
