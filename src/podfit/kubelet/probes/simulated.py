"""The probes of a simulated node: nothing runs there, so all succeed, but the readiness of containers named unready."""

from podfit.api.core.v1.pods.probes import Probe
from podfit.decide.pod.probing import ProbeKind
from podfit.kubelet.probes.checks import Checks, ProbedContainer, ProbeOutcome, ProbeResult
from podfit.kubelet.runtime.container_network import SimulatedReach
from podfit.kubelet.runtime.simulated import SimulatedRuntime


class SimulatedChecks(Checks, frozen=True):
    """`unready` of the runtime are ids of containers."""

    simulated: SimulatedRuntime

    @classmethod
    def of(cls, runtime: SimulatedRuntime) -> "SimulatedChecks":
        return cls(runtime, SimulatedReach(), runtime)

    async def run(self, target: ProbedContainer, probe: Probe) -> ProbeOutcome:
        if target.kind is ProbeKind.READINESS and target.id in self.simulated.unready:
            return ProbeOutcome(ProbeResult.FAILURE, "a test made the container unready")
        return await super().run(target, probe)
