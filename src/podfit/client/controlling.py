"""The VPA that controls a pod (V-067): one that names the pod's topmost controller and whose selector matches; of
several the oldest, then the first by name.
"""

from collections.abc import Iterable

from podfit.api.autoscaling_k8s.v1 import CrossVersionObjectReference, VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity, controller_of, named_by
from podfit.client.targets import Ref, Targets, Unsupported
from podfit.client.workloads import NOTHING
from podfit.core.selectors import Selector
from podfit.decide.autoscaling.targets import NamedTarget, by_age, target_of


class Controlling:
    """What controls pods, of some VPAs, for one look at pods: owners and selectors are asked for once."""

    def __init__(self, targets: Targets, vpas: Iterable[VerticalPodAutoscaler]) -> None:
        self._targets = targets
        self._topmost: dict[ObjectIdentity, Ref | None] = {}
        self._selectors: dict[tuple[str, CrossVersionObjectReference], Selector] = {}
        self._by_target: dict[NamedTarget, dict[str, VerticalPodAutoscaler]] = {}
        """By what they name, the oldest for each version that they name it in."""
        for vpa in vpas:
            target, place = vpa.spec.target_ref, target_of(vpa)
            if target is not None and place is not None:
                versions = self._by_target.setdefault(place, {})
                known = versions.get(target.api_version)
                versions[target.api_version] = vpa if known is None else min(known, vpa, key=by_age)

    async def vpa_of(self, pod: Pod, namespace: str = "") -> VerticalPodAutoscaler | None:
        """`namespace` is that of a pod which does not say its own yet."""
        owner = controller_of(pod.metadata)
        namespace = pod.metadata.namespace or namespace
        if owner is None or not self._by_target:
            return None
        identity = named_by(owner, namespace)
        if identity not in self._topmost:
            self._topmost[identity] = await self._targets.topmost_of(namespace, owner)
        topmost = self._topmost[identity]
        if topmost is None:
            return None
        named = self._by_target.get(NamedTarget(namespace, topmost.kind, topmost.name), {})
        for vpa in sorted(named.values(), key=by_age):
            if (await self._selector(vpa)).matches(pod.metadata.labels):
                return vpa
        return None

    async def _selector(self, vpa: VerticalPodAutoscaler) -> Selector:
        """One that selects nothing where the target gives none."""
        namespace, target = vpa.metadata.namespace, vpa.spec.target_ref
        assert target is not None, "a VPA that names nothing is not kept"
        if (namespace, target) not in self._selectors:
            try:
                self._selectors[namespace, target] = await self._targets.selector(namespace, target)
            except Unsupported:
                self._selectors[namespace, target] = NOTHING
        return self._selectors[namespace, target]
