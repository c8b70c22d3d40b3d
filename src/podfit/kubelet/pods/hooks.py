"""Lifecycle hooks of a container: a command in it, a request to it, or a pause."""

import json

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.probes import ExecAction, HTTPGetAction, LifecycleHandler
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.pod.environment import TooLarge
from podfit.kubelet.probes.checks import expanded
from podfit.kubelet.probes.targets import headers_of, url_of
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.container_network import KEPT, ContainerReach, Failed
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime

AGENT = "kube-lifecycle/1.36"
HTTP_SECONDS = 3600.0  # upstream has no limit: a postStart hook then lasts until its pod is deleted


class HookFailed(Exception):
    """The text is what a waiting state says of a postStart hook."""


class Hooks(msgspec.Struct, frozen=True):
    """`address` is what pods are reached at that say nothing else."""

    runtime: Runtime
    reach: ContainerReach
    clock: Clock
    address: str

    async def run(self, pod: Pod, container: Container, container_id: str, hook: LifecycleHandler) -> None:
        """Until it is over, however long it takes. Raises HookFailed."""
        if hook.sleep is not None:
            await self.clock.sleep(hook.sleep.seconds)
        elif hook.exec is not None:
            await self._exec(pod, container, container_id, hook.exec)
        elif hook.http_get is not None:
            await self._http(pod, container, hook.http_get)
        else:
            raise HookFailed("invalid handler: tcpSocket is not supported")

    async def _exec(self, pod: Pod, container: Container, container_id: str, action: ExecAction) -> None:
        words = " ".join(action.command)
        what = f"Exec lifecycle hook ([{words}]) for {_whose(pod, container)} failed"
        try:
            done = await self.runtime.exec_sync(container_id, expanded(container, action), timeout_seconds=0)
        except (CRIError, TooLarge) as error:
            raise HookFailed(f'{what} - error: {error}, message: ""') from error
        if done.exit_code != 0:
            error_text = f"command '{words}' exited with {done.exit_code}: {_text(done.stderr)}"
            raise HookFailed(f"{what} - error: {error_text}, message: {json.dumps(_text(done.stdout + done.stderr))}")

    async def _http(self, pod: Pod, container: Container, action: HTTPGetAction) -> None:
        """Any answer will do."""
        what = f"HTTP lifecycle hook ({action.path}) for {_whose(pod, container)} failed"
        try:
            url = url_of(container, action, pod.status.pod_ip or self.address)
            await self.reach.http(url, headers_of(action, agent=AGENT), timeout=HTTP_SECONDS)
        except Failed as error:
            raise HookFailed(f'{what} - error: {error}, message: ""') from error


def _whose(pod: Pod, container: Container) -> str:
    return f'Container "{container.name}" in Pod "{labels.ref(pod)}"'


def _text(output: bytes) -> str:
    return output[:KEPT].decode(errors="replace")
