"""The pods that run, which are those whose use is told."""

from typing import Protocol

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer

RUNNING = "Running"


class Pods(Protocol):
    def get(self, name: str, namespace: str = "") -> Pod | None: ...

    def list(self, namespace: str = "") -> list[Pod]: ...


class RunningPods:
    """Those that run of all pods, which others of the process follow as well."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._pods = pods

    def get(self, name: str, namespace: str = "") -> Pod | None:
        pod = self._pods.get(name, namespace)
        return pod if pod is not None and pod.status.phase == RUNNING else None

    def list(self, namespace: str = "") -> list[Pod]:
        return [pod for pod in self._pods.list(namespace) if pod.status.phase == RUNNING]
