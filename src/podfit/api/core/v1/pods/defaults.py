"""Defaults of pods, applied to every pod that is decoded, a resize included."""

from collections.abc import Callable
from typing import TypeVar

from podfit.api.core.v1.pods.aggregate import aggregate, limits_of, requests_of
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import (
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    EphemeralContainer,
    ResourceRequirements,
)
from podfit.api.core.v1.pods.probes import GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe
from podfit.api.core.v1.pods.security import PodSecurityContext
from podfit.api.core.v1.pods.sizes import differ_by_size
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod, PodSpec, PodStatus
from podfit.api.core.v1.pods.volume_defaults import default_volume, field_ref, pull_policy
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.base import ResourceList
from podfit.api.meta.defaulting import change, completed, fill, inside, inside_changed, rounded
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO
from podfit.core.resources import HUGEPAGES, overcommittable
from podfit.core.resources import pod_level as is_pod_level

_NO_SECURITY = PodSecurityContext()
AnyContainer = TypeVar("AnyContainer", Container, EphemeralContainer)


def default_pod(pod: Pod, gates: FeatureGates, old: Pod | None = None) -> Pod:
    """`old` is what the pod was made from: of its parts, those that are still the very same have their defaults."""

    def spec(spec: PodSpec, before: PodSpec | None) -> PodSpec:
        return default_pod_spec(spec, gates, before)

    return inside_changed(pod, old, spec=spec, status=_status)


def default_pod_spec(spec: PodSpec, gates: FeatureGates, old: PodSpec | None = None) -> PodSpec:
    if old is not None and differ_by_size(spec, old):
        spec = inside_changed(spec, old, init_containers=_sized, containers=_sized, resources=_rounded)
    else:
        spec = fill(_template_spec(spec, old), enable_service_links=True)
        same_ports = old if old is not None and spec.host_network == old.host_network else None
        container = _container_of(spec)
        spec = inside_changed(spec, same_ports, init_containers=container, containers=container)
    return change(spec, resources=_pod_level(spec)) if gates["PodLevelResources"] else spec


def default_template(template: PodTemplateSpec) -> PodTemplateSpec:
    return inside(template, spec=default_template_spec)


def default_template_spec(spec: PodSpec) -> PodSpec:
    """Of a pod to be: what follows from the others of its fields is left to the pod's own creation."""
    return _template_spec(spec, None)


def _template_spec(spec: PodSpec, old: PodSpec | None) -> PodSpec:
    account = spec.service_account_name or spec.service_account
    spec = fill(
        change(spec, service_account_name=account, service_account=account),
        restart_policy="Always",
        dns_policy="ClusterFirst",
        termination_grace_period_seconds=30,
        security_context=_NO_SECURITY,
        scheduler_name="default-scheduler",
    )
    return inside_changed(
        spec,
        old,
        volumes=_volume,
        init_containers=_container,
        containers=_container,
        ephemeral_containers=_container,
        resources=_rounded,
        overhead=_rounded_amounts,
    )


def _volume(volume: Volume, _: object) -> Volume:
    return default_volume(volume)


def _container_of(spec: PodSpec) -> Callable[[Container, Container | None], Container]:
    """On the host's network every port is a host port."""

    def bound(port: ContainerPort) -> ContainerPort:
        return fill(port, host_port=port.container_port)

    def default(container: Container, _: Container | None) -> Container:
        container = inside(container, resources=_requests_from_limits)
        return inside(container, ports=bound) if spec.host_network else container

    return default


def _container(container: AnyContainer, old: AnyContainer | None) -> AnyContainer:
    container = fill(
        container,
        image_pull_policy=container.image_pull_policy or pull_policy(container.image),
        termination_message_path="/dev/termination-log",
        termination_message_policy="File",
    )
    return inside_changed(
        container,
        old,
        ports=_port,
        env=_env,
        resources=_rounded,
        liveness_probe=_probe,
        readiness_probe=_probe,
        startup_probe=_probe,
        lifecycle=_lifecycle,
    )


def _port(port: ContainerPort, _: object = None) -> ContainerPort:
    return fill(port, protocol="TCP")


def _env(variable: EnvVar, _: object = None) -> EnvVar:
    return inside(variable, value_from=_env_source)


def _env_source(source: EnvVarSource) -> EnvVarSource:
    return inside(source, field_ref=field_ref, resource_field_ref=lambda ref: fill(ref, divisor=ZERO))


def _probe(probe: Probe, _: object = None) -> Probe:
    probe = fill(probe, timeout_seconds=1, period_seconds=10, success_threshold=1, failure_threshold=3)
    return inside(probe, http_get=_http_get, grpc=_grpc)


def _grpc(action: GRPCAction) -> GRPCAction:
    return fill(action, service="")


def _http_get(action: HTTPGetAction) -> HTTPGetAction:
    return fill(action, path="/", scheme="HTTP")


def _lifecycle(lifecycle: Lifecycle, _: object = None) -> Lifecycle:
    return inside(lifecycle, post_start=_hook, pre_stop=_hook)


def _hook(handler: LifecycleHandler) -> LifecycleHandler:
    return inside(handler, http_get=_http_get)


def _rounded(resources: ResourceRequirements, _: object = None) -> ResourceRequirements:
    return inside(resources, limits=rounded, requests=rounded)


def _rounded_amounts(amounts: ResourceList, _: object = None) -> ResourceList:
    return rounded(amounts)


def _sized(container: Container, _: object) -> Container:
    """Of a container that has its other defaults."""
    return inside(container, resources=lambda resources: _requests_from_limits(_rounded(resources)))


def _requests_from_limits(resources: ResourceRequirements) -> ResourceRequirements:
    """A limit alone is a request too (R-016)."""
    return change(resources, requests=completed(resources.requests, resources.limits))


def _pod_level(spec: PodSpec) -> ResourceRequirements | None:
    """`spec.resources` with what follows from the containers; requests follow only once there are limits (R-054)."""
    level = spec.resources
    if level is None or not (level.limits or level.requests):
        return level
    limits = dict(level.limits)
    for name, amount in aggregate(spec, limits_of).items():
        if name.startswith(HUGEPAGES) and name not in level.requests:
            limits.setdefault(name, amount)
    requests = dict(level.requests)
    if limits:
        for name, amount in aggregate(spec, requests_of).items():
            if is_pod_level(name) and overcommittable(name):
                requests.setdefault(name, amount)
        requests = {**limits, **requests}
    if limits == level.limits and requests == level.requests:
        return level
    return change(level, limits=limits, requests=requests)


def _status(status: PodStatus, old: PodStatus | None) -> PodStatus:
    return inside_changed(
        status,
        old,
        allocated_resources=_rounded_amounts,
        resources=_rounded,
        container_statuses=_container_status,
        init_container_statuses=_container_status,
    )


def _container_status(status: ContainerStatus, old: ContainerStatus | None) -> ContainerStatus:
    return inside_changed(status, old, allocated_resources=_rounded_amounts, resources=_rounded)
