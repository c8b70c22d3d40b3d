"""A static pod that replaces one of the same name waits until nothing of the first is left."""

from collections.abc import Iterable

from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod


class Successors:
    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], Pod] = {}

    def has_to_wait(self, pod: Pod, others: Iterable[Pod]) -> bool:
        """Whether one of the `others`, those that are here now, has its name. It is remembered then."""
        if not is_static(pod) or not any(is_static(other) and _name(other) == _name(pod) for other in others):
            return False
        self._waiting[_name(pod)] = pod
        return True

    def drop(self, pod: Pod) -> bool:
        """It is wanted no longer; whether it still waited."""
        found = self._waiting.get(_name(pod))
        if found is None or found.metadata.uid != pod.metadata.uid:
            return False
        del self._waiting[_name(pod)]
        return True

    def after(self, pod: Pod) -> Pod | None:
        """Who waited for the end of `pod`."""
        return self._waiting.pop(_name(pod), None) if is_static(pod) else None


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
