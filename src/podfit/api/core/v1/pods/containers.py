"""The container of a pod's spec. `resources` is the desired state of a resize."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.pods.probes import Lifecycle, Probe
from podfit.api.core.v1.pods.security import SecurityContext
from podfit.api.core.v1.references import (
    ConfigMapKeySelector,
    FileKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from podfit.api.meta.base import SET_REPLACED, ResourceList, Struct, always, keyed


class ContainerPort(Struct):
    name: str = ""
    container_port: int = always(default=0)
    host_ip: str = ""
    host_port: int = 0
    protocol: str = ""


class ContainerResizePolicy(Struct):
    resource_name: str = always(default="")
    restart_policy: str = always(default="")


class ContainerRestartRuleOnExitCodes(Struct):
    operator: str = always(default="")
    values: Annotated[tuple[int, ...], SET_REPLACED] = ()


class ContainerRestartRule(Struct):
    action: str = always(default="")
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ConfigMapEnvSource(Struct):
    name: str = ""
    optional: bool | None = None


class SecretEnvSource(Struct):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(Struct):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str = ""
    secret_ref: SecretEnvSource | None = None


class EnvVarSource(Struct):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Struct):
    name: str = always(default="")
    value: str = ""
    value_from: EnvVarSource | None = None


class ResourceClaim(Struct):
    name: str = always(default="")
    request: str = ""


class ResourceRequirements(Struct):
    claims: Annotated[tuple[ResourceClaim, ...], keyed("name", patch=False)] = ()
    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)


class VolumeDevice(Struct):
    name: str = always(default="")
    device_path: str = always(default="")


class VolumeMount(Struct):
    name: str = always(default="")
    mount_path: str = always(default="")
    mount_propagation: str | None = None
    read_only: bool = False
    recursive_read_only: str | None = None
    sub_path: str = ""
    sub_path_expr: str = ""


class _Container(Struct):
    name: str = always(default="")
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Annotated[tuple[EnvVar, ...], keyed("name")] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    ports: Annotated[tuple[ContainerPort, ...], keyed("containerPort", "protocol", protocol="TCP")] = ()
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    resources: ResourceRequirements = always(default=ResourceRequirements())
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool = False
    stdin_once: bool = False
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool = False
    volume_devices: Annotated[tuple[VolumeDevice, ...], keyed("devicePath")] = ()
    volume_mounts: Annotated[tuple[VolumeMount, ...], keyed("mountPath")] = ()
    working_dir: str = ""


class Container(_Container):
    pass


class EphemeralContainer(_Container):
    """A container that is added to a pod that runs, for debugging."""

    target_container_name: str = ""
