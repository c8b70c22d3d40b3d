"""Running one probe, and its outcome in upstream's words.

exec   exit code 0 is a success; what it wrote is the text of a failure
http   200 to 399 is a success; a redirect to another host is not followed, and is one with a warning
tcp    a connection is a success
grpc   SERVING is a success
"""

import enum

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.probes import ExecAction, HTTPGetAction, Probe
from podfit.decide.pod.environment import STRING_BYTES, TooLarge, expand_within
from podfit.decide.pod.probing import ProbeKind
from podfit.kubelet.probes.targets import headers_of, port_of, url_of
from podfit.kubelet.runtime.container_network import KEPT, ContainerReach, Failed
from podfit.kubelet.runtime.errors import CRIError, TimedOut
from podfit.kubelet.runtime.protocol import Runtime

AGENT = "kube-probe/1.36"
TRIES = 3  # of a probe that could not be run at all


class ProbeResult(enum.Enum):
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class ProbeOutcome(msgspec.Struct, frozen=True):
    """UNKNOWN: the probe could not be run, which counts for nothing."""

    verdict: ProbeResult
    text: str = ""


SUCCESS = ProbeOutcome(ProbeResult.SUCCESS)


class ProbedContainer(msgspec.Struct, frozen=True):
    """The running container `id`; `address` is its pod's, `kind` that of the probe."""

    container: Container
    id: str
    address: str
    kind: ProbeKind


class Checks(msgspec.Struct, frozen=True):
    runtime: Runtime
    reach: ContainerReach

    async def run(self, target: ProbedContainer, probe: Probe) -> ProbeOutcome:
        """Once, or a few times when it cannot be run."""
        outcome = ProbeOutcome(ProbeResult.UNKNOWN)
        for _ in range(TRIES):
            outcome = await self._once(target, probe)
            if outcome.verdict is not ProbeResult.UNKNOWN:
                break
        return outcome

    async def _once(self, target: ProbedContainer, probe: Probe) -> ProbeOutcome:
        timeout = float(probe.timeout_seconds or 1)
        if probe.exec is not None:
            return await self._exec(target, probe.exec, timeout)
        if probe.http_get is not None:
            return await self._http(target, probe.http_get, timeout)
        try:
            if probe.tcp_socket is not None:
                port = port_of(target.container, probe.tcp_socket.port)
            elif probe.grpc is not None:
                port = port_of(target.container, probe.grpc.port)
            else:
                return ProbeOutcome(ProbeResult.UNKNOWN, f"missing probe handler for {target.container.name}")
        except Failed as error:
            return ProbeOutcome(ProbeResult.UNKNOWN, str(error))
        try:
            if probe.tcp_socket is not None:
                await self.reach.tcp(probe.tcp_socket.host or target.address, port, timeout=timeout)
            elif probe.grpc is not None:
                await self.reach.grpc(target.address, port, probe.grpc.service or "", timeout=timeout)
        except Failed as error:
            return ProbeOutcome(ProbeResult.FAILURE, str(error))
        return SUCCESS

    async def _exec(self, target: ProbedContainer, action: ExecAction, timeout: float) -> ProbeOutcome:
        try:
            command = expanded(target.container, action)
            done = await self.runtime.exec_sync(target.id, command, timeout_seconds=timeout)
        except TimedOut:
            words = " ".join(action.command)
            return ProbeOutcome(ProbeResult.FAILURE, f'command timed out: "{words}" timed out after {timeout:g}s')
        except (CRIError, TooLarge) as error:
            return ProbeOutcome(ProbeResult.UNKNOWN, str(error))
        if done.exit_code == 0:
            return SUCCESS
        return ProbeOutcome(ProbeResult.FAILURE, (done.stdout + done.stderr)[:KEPT].decode(errors="replace"))

    async def _http(self, target: ProbedContainer, action: HTTPGetAction, timeout: float) -> ProbeOutcome:
        try:
            url = url_of(target.container, action, target.address)
        except Failed as error:
            return ProbeOutcome(ProbeResult.UNKNOWN, str(error))
        try:
            answer = await self.reach.http(url, headers_of(action, agent=AGENT), timeout=timeout)
        except Failed as error:
            return ProbeOutcome(ProbeResult.FAILURE, str(error))
        if answer.redirected:
            body = answer.body.decode(errors="replace")
            return ProbeOutcome(ProbeResult.WARNING, f"Probe terminated redirects, Response body: {body}")
        if 200 <= answer.status < 400:
            return SUCCESS
        return ProbeOutcome(ProbeResult.FAILURE, f"HTTP probe failed with statuscode: {answer.status}")


def expanded(container: Container, action: ExecAction) -> tuple[str, ...]:
    """The command with $(NAME) for those variables whose value stands in the spec. Raises TooLarge."""
    values = {variable.name: variable.value for variable in container.env if variable.value_from is None}
    return tuple(expand_within("exec command", word, values, limit=STRING_BYTES) for word in action.command)
