"""`NodeView` of this node, as the node machine gets it before each step."""

import msgspec

from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.resize.verdict import NodeView
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.kubelet.node.agent import NodeAgent
from podfit.kubelet.node.extended_resources import extended
from podfit.kubelet.node.pressure import PressureMonitor


class NodeViews(msgspec.Struct, frozen=True):
    """Call it for the node as it is now."""

    config: KubeletConfig
    machine: Machine
    managers: ResourceManagers
    agent: NodeAgent
    pressure: PressureMonitor

    def __call__(self) -> NodeView:
        policies = self.config.managers
        return NodeView(
            allocatable={**extended(self.agent.node), **self.config.allocatable, **self.agent.lent},
            machine=self.machine,
            node=self.agent.node,
            cpu_manager=policies.cpu_policy,
            memory_manager=policies.memory_policy,
            cpus=self.managers.cpus,
            memory=self.managers.memory,
            pressure=self.pressure.conditions,
            shutting_down=self.agent.shutting_down,
        )
