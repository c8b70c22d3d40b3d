"""The inputs of a pod's status."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodStatus
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.cgroup.pod_cgroup import PodValues
from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.probes.health import WELL, Health
from podfit.kubelet.runtime.types import ContainerState, ContainerStatus, SandboxState, SandboxStatus


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime says: the newest sandbox, and every instance of every container it still knows, newest first."""

    sandbox: SandboxStatus | None = None
    containers: tuple[ContainerStatus, ...] = ()
    health: Health = WELL

    def instances(self, name: str) -> tuple[ContainerStatus, ...]:
        return tuple(container for container in self.containers if container.name == name)

    @property
    def anything_runs(self) -> bool:
        return any(container.state is ContainerState.RUNNING for container in self.containers)

    @property
    def sandbox_stands(self) -> bool:
        return self.sandbox is not None and self.sandbox.state is SandboxState.READY

    @property
    def sandbox_ready(self) -> bool:
        """Whether containers can be started in it."""
        sandbox = self.sandbox
        return sandbox is not None and self.sandbox_stands and bool(sandbox.host_network or sandbox.ips)


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
    observed: Observation
    machine: Machine
    node_ip: str
    now: datetime
    runtime_name: str = "containerd"
    resize_conditions: tuple[PodCondition, ...] = ()
    waiting: Mapping[str, ContainerStateWaiting] = msgspec.field(default_factory=dict)
    actuated: PodResources = PodResources()
    pod_values: PodValues | None = None
    ended: bool = False
    failure: Failure | None = None
