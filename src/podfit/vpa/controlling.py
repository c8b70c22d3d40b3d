"""Which VPA controls a pod (V-067): one that names the pod's topmost controller and whose selector matches; of several
the oldest, then the first by name."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.core.selectors import Selector
from podfit.core.times import parse_time
from podfit.vpa.targets import Ref, Targets, Unsupported


class Candidate(msgspec.Struct, frozen=True):
    vpa: VerticalPodAutoscaler
    selector: Selector

    @property
    def age(self) -> tuple[float, str]:
        """Sort key: the oldest first."""
        created = self.vpa.metadata.creation_timestamp
        return parse_time(created).timestamp() if created else float("inf"), self.vpa.metadata.name


class _Target(NamedTuple):
    namespace: str
    kind: str
    name: str


class Controlling:
    """Of some VPAs, for one look at pods: what owners are owned by is asked once."""

    def __init__(self, targets: Targets, candidates: Iterable[Candidate]) -> None:
        self._targets = targets
        self._topmost: dict[tuple[str, Ref], Ref | None] = {}
        self._by_target: dict[_Target, list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda candidate: candidate.age):
            target = candidate.vpa.spec.target_ref
            if target is not None:
                place = _Target(candidate.vpa.metadata.namespace, target.kind, target.name)
                self._by_target.setdefault(place, []).append(candidate)

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
        found = self._by_target.get(_Target(namespace, topmost.kind, topmost.name), ())
        return next((each.vpa for each in found if each.selector.matches(pod.metadata.labels)), None)


async def candidates(targets: Targets, vpas: Iterable[VerticalPodAutoscaler]) -> list[Candidate]:
    """Without those whose target gives no selector."""
    found = []
    for vpa in vpas:
        try:
            found.append(Candidate(vpa, await targets.selector(vpa.metadata.namespace, vpa.spec.target_ref)))
        except Unsupported:
            continue
    return found
