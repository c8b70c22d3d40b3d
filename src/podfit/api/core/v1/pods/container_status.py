"""The status of a container: `allocatedResources` is allocated, `resources` is what the runtime enforces."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.meta.base import ResourceList, Struct, Time, always, keyed


class ContainerStateRunning(Struct):
    started_at: Time | None = always(default=None)


class ContainerStateTerminated(Struct):
    container_id: str = ""
    exit_code: int = always(default=0)
    finished_at: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    signal: int = 0
    started_at: Time | None = always(default=None)


class ContainerStateWaiting(Struct):
    message: str = ""
    reason: str = ""


class ContainerState(Struct):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class LinuxContainerUser(Struct):
    gid: int = always(default=0)
    supplemental_groups: tuple[int, ...] = ()
    uid: int = always(default=0)


class ContainerUser(Struct):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Struct):
    health: str = ""
    message: str = ""
    resource_id: str = always(default="")


class ResourceStatus(Struct):
    name: str = always(default="")
    resources: Annotated[tuple[ResourceHealth, ...], keyed("resourceID", patch=False)] = ()


class ImageVolumeStatus(Struct):
    image_ref: str = always(default="")


class VolumeStatus(Struct):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Struct):
    name: str = always(default="")
    mount_path: str = always(default="")
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class ContainerStatus(Struct):
    name: str = always(default="")
    allocated_resources: ResourceList = field(default_factory=dict)
    allocated_resources_status: Annotated[tuple[ResourceStatus, ...], keyed("name")] = ()
    container_id: str = ""
    image: str = always(default="")
    image_id: str = always(default="")
    last_state: ContainerState = always(default=ContainerState())
    ready: bool = always(default=False)
    resources: ResourceRequirements | None = None
    restart_count: int = always(default=0)
    started: bool | None = None
    state: ContainerState = always(default=ContainerState())
    stop_signal: str = ""
    user: ContainerUser | None = None
    volume_mounts: Annotated[tuple[VolumeMountStatus, ...], keyed("mountPath")] = ()
