"""What every pod worker of a node shares."""

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.randomness import fraction
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.lifecycle.facts import PodFacts
from podfit.decide.lifecycle.status import addressed
from podfit.kubelet.actuation.actuator import Actuator
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.cgroup.protocol import Cgroups
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.network.network import PodNetwork
from podfit.kubelet.pods.killer import Killer
from podfit.kubelet.pods.metrics import PodMetrics
from podfit.kubelet.pods.resize_turns import EventDelay, Slots
from podfit.kubelet.pods.runtime_facts import observe
from podfit.kubelet.pods.starter import Starter
from podfit.kubelet.probes.manager import ProbeManager
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.sources.names import NodeNames
from podfit.kubelet.volumes.manager import Volumes

NO_IDS = frozenset[str]()


class WorkerContext(msgspec.Struct, frozen=True, kw_only=True):
    """`emit` records an event about a pod: pod, type, reason, message, field path; `tell` one about the node: type,
    reason, message. `active` are the allocated pods that count for the QoS tiers. `desired` is a pod of the API
    with the limits that the node has moved, and `burst_conditions` what the status says of them. `runtime_name` is the
    scheme of container ids.
    """

    client: Client
    runtime: Runtime
    cgroups: Cgroups
    config: KubeletConfig
    clock: Clock
    machine: Machine
    runtime_name: str
    allocation: AllocationManager
    actuator: Actuator
    volumes: Volumes
    starter: Starter
    killer: Killer
    metrics: PodMetrics
    names: NodeNames
    network: PodNetwork
    probes: ProbeManager
    emit: Callable[[Pod, str, str, str, str], None]
    tell: Callable[[str, str, str], None]
    event_delay: EventDelay
    resize_turns: Slots
    active: Callable[[], Iterable[Pod]]
    desired: Callable[[Pod], Pod]
    burst_conditions: Callable[[Pod], tuple[PodCondition, ...]]

    async def look(self, pod: Pod, before: PodFacts | None = None, *, resized: bool = False) -> PodFacts:
        """What the runtime shows of a pod, and its probes say; `before` and `resized` as in `observe`. Raises
        CRIError.
        """
        return self.probed(pod, await observe(self.runtime, pod.metadata.uid, before, resized=resized))

    def probed(self, pod: Pod, facts: PodFacts) -> PodFacts:
        """The facts with what the probes of the containers say now."""
        actuated = self.actuator.actuated(pod.metadata.uid)
        restarting = frozenset(actuated.restarting.values()) if actuated is not None else NO_IDS
        reached = addressed(pod, facts.status, self.config.host_ip)
        return replace(facts, health=self.probes.look(reached, facts.containers), restarting=restarting)

    def jittered(self, seconds: float) -> float:
        """Up to half as long again, so that pods do not move in step."""
        return seconds * (1 + fraction(self.client.random) / 2)
