"""What the runtime and the probes report of one pod: the only basis on which its life is decided.

Nothing about running containers is remembered between two looks; they are asked for again, so a restarted kubelet,
a restarted runtime and an undisturbed one look the same. The structs mirror what the kubelet uses of CRI v1. Times are
Unix nanoseconds (0 = never), sizes are bytes.
"""

import enum
from collections.abc import Mapping
from datetime import datetime

import msgspec

from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodSpec, PodStatus
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.cgroup.pod_cgroup import PodValues
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.probing import ProbeKind

KILLED = 137  # the exit code of a container that SIGKILL ended


class SandboxState(enum.Enum):
    READY = "ready"
    NOT_READY = "not ready"


class ContainerState(enum.Enum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class LinuxResources(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one container or sandbox. A field that is 0 or empty leaves the present value alone.

    `cpu_quota` and `cpu_period` are microseconds, quota -1 = no limit; `memory_limit` -1 = no limit;
    `hugepages` maps a page size such as `2MB` to bytes; `unified` holds cgroup v2 files by name.
    """

    cpu_shares: int = 0
    cpu_quota: int = 0
    cpu_period: int = 0
    memory_limit: int = 0
    oom_score_adj: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    hugepages: Mapping[str, int] = msgspec.field(default_factory=dict)
    unified: Mapping[str, str] = msgspec.field(default_factory=dict)
    swap_limit: int = 0


class WindowsResources(msgspec.Struct, frozen=True, kw_only=True):
    """The same of a Windows container: `cpu_maximum` in ten-thousandths of the machine, sizes in bytes."""

    cpu_shares: int = 0
    cpu_count: int = 0
    cpu_maximum: int = 0
    memory_limit: int = 0
    rootfs_size: int = 0


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the sandbox list."""

    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    state: SandboxState
    created_at: int
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class SandboxStatus(Sandbox, frozen=True, kw_only=True):
    """`ips` is empty on the host network; the first one is the pod IP otherwise."""

    ips: tuple[str, ...] = ()
    host_network: bool = False


class ContainerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`exit_code` and `reason` (`Completed`, `Error`, `OOMKilled`) mean something once EXITED.

    `resources` is None where the runtime does not report them; `log_path` is absolute. `stop_signal` is empty where it
    is the image's, or the runtime does not know of another.
    A container that met the OOM killer may show RUNNING with reason OOMKilled for a moment.
    """

    id: str
    name: str
    attempt: int
    state: ContainerState
    created_at: int
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""
    image_id: str = ""
    image_ref: str = ""
    log_path: str = ""
    resources: LinuxResources | None = None
    windows: WindowsResources | None = None
    stop_signal: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    recursive_read_only: frozenset[str] = frozenset()
    """Where something is mounted with all below it read-only, by the paths in the container."""


class Health(msgspec.Struct, frozen=True):
    """`unstarted`: the startup probe has not passed. `unready`: that, or the readiness probe does not pass. `failed`:
    it has to be restarted, because of a probe of this kind.
    """

    unstarted: frozenset[str] = frozenset()
    unready: frozenset[str] = frozenset()
    failed: Mapping[str, ProbeKind] = msgspec.field(default_factory=dict)


WELL = Health()


class PodFacts(msgspec.Struct, frozen=True):
    """Sandboxes and containers, newest first. `home` maps a container's id to its sandbox's."""

    uid: str
    sandboxes: tuple[Sandbox, ...] = ()
    status: SandboxStatus | None = None
    """Of the newest sandbox."""
    containers: tuple[ContainerStatus, ...] = ()
    home: tuple[tuple[str, str], ...] = ()
    health: Health = WELL
    """What probes say of the containers."""
    restarting: frozenset[str] = frozenset()
    """Ids of instances that the kubelet stopped, or meant to stop, in order to start their containers anew."""

    @property
    def sandbox(self) -> Sandbox | None:
        """The sandbox that containers can run in."""
        newest = self.sandboxes[0] if self.sandboxes else None
        return newest if newest is not None and newest.state is SandboxState.READY else None

    @property
    def running(self) -> tuple[ContainerStatus, ...]:
        return tuple(c for c in self.containers if c.state is ContainerState.RUNNING)

    @property
    def running_ids(self) -> dict[str, str]:
        """Ids of the running containers by name."""
        return {container.name: container.id for container in reversed(self.running)}

    @property
    def states(self) -> dict[str, str]:
        """The states of sandboxes and containers by id."""
        found = {sandbox.id: sandbox.state.value for sandbox in self.sandboxes}
        return found | {container.id: container.state.value for container in self.containers}

    @property
    def anything_runs(self) -> bool:
        return any(container.state is ContainerState.RUNNING for container in self.containers)

    @property
    def sandbox_stands(self) -> bool:
        return self.status is not None and self.status.state is SandboxState.READY

    @property
    def sandbox_ready(self) -> bool:
        """Whether containers can be started in it."""
        newest = self.status
        return newest is not None and self.sandbox_stands and bool(newest.host_network or newest.ips)

    def comes_again(self, spec: PodSpec, container: Container, ended: ContainerStatus) -> bool:
        """Whether the container starts again after this instance: stopped for it, else by its rules and policies."""
        return ended.id in self.restarting or starts_again(spec, container, ended.exit_code)

    @property
    def starting_again(self) -> frozenset[str]:
        """Names of containers that start whatever their policies say: stopped for it, made and not started yet, or of a
        state that nobody knows.
        """
        newest = {container.name: container for container in reversed(self.containers)}
        return frozenset(
            name
            for name, instance in newest.items()
            if instance.id in self.restarting or instance.state in (ContainerState.CREATED, ContainerState.UNKNOWN)
        )

    def instances(self, name: str) -> tuple[ContainerStatus, ...]:
        """The instances of a container that the runtime still knows, newest first."""
        return tuple(container for container in self.containers if container.name == name)

    def last(self, name: str) -> ContainerStatus | None:
        """The newest instance of a container, whatever sandbox it was in."""
        return next((c for c in self.containers if c.name == name), None)

    def last_ended(self, name: str) -> ContainerStatus | None:
        """The newest instance that has ended, unless a newer one was made and never started."""
        instances = [c for c in self.containers if c.name == name]
        if instances and instances[0].state is ContainerState.CREATED:
            return None
        return next((c for c in instances if c.state is ContainerState.EXITED), None)

    def here(self, name: str) -> ContainerStatus | None:
        """The newest instance in the present sandbox."""
        sandbox = self.sandbox
        if sandbox is None:
            return None
        inside = {container for container, home in self.home if home == sandbox.id}
        return next((c for c in self.containers if c.name == name and c.id in inside), None)


class Failure(msgspec.Struct, frozen=True):
    """Why a pod fails whatever its containers say. `disruption` is the message of its condition DisruptionTarget;
    `grace` the seconds that its containers get, None for those that it asks for.
    """

    reason: str
    message: str
    disruption: str = ""
    grace: int | None = None


class StatusInput(msgspec.Struct, frozen=True, kw_only=True):
    """`pod` is the API's object, `allocated` the same at its allocated size, `previous` the status last generated.

    `waiting` says of containers that do not run why, by name: ErrImagePull, CrashLoopBackOff and the like.
    `pod_values` is what the pod's cgroup holds, None when there is none. `ended` means that nothing will be started any
    more, because the pod is being deleted or was ended from outside; then `failure` says why in the latter case.
    `runtime_name` is the scheme of container ids, `containerd`.
    """

    pod: Pod
    allocated: Pod
    previous: PodStatus
    observed: PodFacts
    machine: Machine
    node_ip: str
    now: datetime
    runtime_name: str = "containerd"
    resize_conditions: tuple[PodCondition, ...] = ()
    burst_conditions: tuple[PodCondition, ...] = ()
    waiting: Mapping[str, ContainerStateWaiting] = msgspec.field(default_factory=dict)
    actuated: PodResources = PodResources()
    pod_values: PodValues | None = None
    ended: bool = False
    failure: Failure | None = None
