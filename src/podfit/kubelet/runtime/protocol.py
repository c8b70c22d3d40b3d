"""`Runtime`: the interface between the kubelet and whatever runs containers.

CRI's calls, one method each, in our own types. Every method may raise `CRIError` or one of its kinds (see `errors`).
Stop and remove are idempotent: an id that is gone is not an error.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from podfit.decide.lifecycle.facts import ContainerStatus, LinuxResources, Sandbox, SandboxStatus
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.types import (
    CgroupDriver,
    Container,
    ContainerEvent,
    ContainerStats,
    Executed,
    Image,
    RuntimeStatus,
    SandboxStats,
    Streams,
    Version,
)


class Sandboxes(Protocol):
    async def run_sandbox(self, config: SandboxConfig, *, handler: str = "") -> str:
        """Create and start a pod's sandbox; answers its id."""

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Kill what still runs in it and release its network."""

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Remove it with all its containers."""

    async def list_sandboxes(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Sandbox, ...]:
        """All sandboxes; those with all of these labels if given."""

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus: ...

    async def update_sandbox_resources(
        self, sandbox_id: str, *, resources: LinuxResources, overhead: LinuxResources | None = None
    ) -> None:
        """Tell the runtime what the pod cgroup will hold; it writes no cgroup itself. Often `Unimplemented`."""

    async def port_forward_url(self, sandbox_id: str) -> str:
        """Where connections to ports of the sandbox can be made."""

    async def sandbox_stats(self, sandbox_id: str) -> SandboxStats: ...


class Containers(Protocol):
    async def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        """Create, not start; `sandbox` is the configuration the sandbox was run with. Answers the container id."""

    async def start_container(self, container_id: str) -> None: ...

    async def stop_container(self, container_id: str, *, grace_seconds: int) -> None:
        """SIGTERM (or the image's stop signal), then SIGKILL after the grace; returns when it has exited."""

    async def remove_container(self, container_id: str) -> None: ...

    async def list_containers(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Container, ...]:
        """All containers, exited ones too; those with all of these labels if given."""

    async def container_status(self, container_id: str) -> ContainerStatus: ...

    async def update_container_resources(self, container_id: str, resources: LinuxResources) -> None:
        """Change limits of a live container without restarting it; a stopped one keeps them for its next start."""

    async def reopen_container_log(self, container_id: str) -> None:
        """Its log file was renamed: begin a new one. Raises CRIError."""

    async def exec_sync(self, container_id: str, command: Sequence[str], *, timeout_seconds: float) -> Executed:
        """Run a command in it to its end. 0 = however long it takes. Raises TimedOut after having ended it."""

    async def exec_url(self, container_id: str, command: Sequence[str], streams: Streams) -> str:
        """Where a command in the container can be begun: a URL that is good for once."""

    async def attach_url(self, container_id: str, streams: Streams) -> str:
        """Where the container's own process can be listened to and told something."""

    async def container_stats(self, container_id: str) -> ContainerStats: ...

    async def list_container_stats(self) -> tuple[ContainerStats, ...]: ...


class Images(Protocol):
    async def list_images(self) -> tuple[Image, ...]: ...

    async def image_status(self, image: str) -> Image | None:
        """None when the runtime does not have it."""

    async def pull_image(self, image: str, credential: Credential | None = None) -> str:
        """Fetch from a registry, as that user if one is given; answers the image id."""

    async def remove_image(self, image: str) -> None:
        """Remove the image with every tag it has."""

    async def image_root(self) -> str:
        """A directory of the file system that holds images and writable layers; empty when nobody says."""

    async def import_archive(self, archive: Path) -> tuple[str, ...]:
        """Load a docker-save or OCI archive; returns its image names, e.g. `docker.io/library/busybox:1.36`."""


class Runtime(Sandboxes, Containers, Images, Protocol):
    async def version(self) -> Version: ...

    async def status(self) -> RuntimeStatus: ...

    async def cgroup_driver(self) -> CgroupDriver | None:
        """None when the runtime cannot say (before containerd 2.0): the configuration decides."""

    async def events(self) -> AsyncIterator[ContainerEvent] | None:
        """Container events as they happen, until the runtime goes (`Unavailable`); None = it has none: relist."""

    async def close(self) -> None:
        """Let go of the connection; containers are left alone."""
