"""The VPA that controls a pod (V-067): one that names the pod's topmost controller and whose selector matches; of
several the oldest, then the first by name.
"""

from collections.abc import Iterable
from typing import NamedTuple

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.core.selectors import Selector
from podfit.core.times import parse_time
from podfit.vpa.targets import Ref, Targets, Unsupported
from podfit.vpa.workloads import NOTHING


class _Target(NamedTuple):
    namespace: str
    kind: str
    name: str


class Controlling:
    """Of some VPAs, for one look at pods: owners and selectors are asked for once."""

    def __init__(self, targets: Targets, vpas: Iterable[VerticalPodAutoscaler]) -> None:
        self._targets = targets
        self._topmost: dict[tuple[str, Ref], Ref | None] = {}
        self._selectors: dict[str, Selector] = {}
        self._by_target: dict[_Target, list[VerticalPodAutoscaler]] = {}
        for vpa in sorted(vpas, key=_age):
            target = vpa.spec.target_ref
            if target is not None:
                place = _Target(vpa.metadata.namespace, target.kind, target.name)
                self._by_target.setdefault(place, []).append(vpa)

    async def vpa_of(self, pod: Pod, namespace: str = "") -> VerticalPodAutoscaler | None:
        """`namespace` is that of a pod which does not say its own yet."""
        owner = next((reference for reference in pod.metadata.owner_references if reference.controller), None)
        namespace = pod.metadata.namespace or namespace
        if owner is None or not self._by_target:
            return None
        place = namespace, Ref(owner.api_version, owner.kind, owner.name)
        if place not in self._topmost:
            self._topmost[place] = await self._targets.topmost_of(*place)
        topmost = self._topmost[place]
        if topmost is None:
            return None
        for vpa in self._by_target.get(_Target(namespace, topmost.kind, topmost.name), ()):
            if (await self._selector(vpa)).matches(pod.metadata.labels):
                return vpa
        return None

    async def _selector(self, vpa: VerticalPodAutoscaler) -> Selector:
        """One that selects nothing where the target gives none."""
        uid = vpa.metadata.uid
        if uid not in self._selectors:
            try:
                self._selectors[uid] = await self._targets.selector(vpa.metadata.namespace, vpa.spec.target_ref)
            except Unsupported:
                self._selectors[uid] = NOTHING
        return self._selectors[uid]


def _age(vpa: VerticalPodAutoscaler) -> tuple[float, str]:
    """Sort key: the oldest first."""
    created = vpa.metadata.creation_timestamp
    return parse_time(created).timestamp() if created else float("inf"), vpa.metadata.name
