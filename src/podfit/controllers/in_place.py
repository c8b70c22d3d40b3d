"""What the controllers of workloads share in rollouts in place: who asks for it, and what is done to pods.

What a new pod would get is asked of the API server, which tries to make one without making it (a dry run): so its
admission has its say, such as a LimitRange's defaults and a VPA's webhook, and a size that a VPA gave is not undone.
"""

from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.base import Object
from podfit.api.meta.codec import to_dict
from podfit.api.meta.owners import reference_to
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import MERGE_PATCH, Client
from podfit.controllers.base import Key, key_of
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, namespace_ends
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.in_place.asking import Asked, asked
from podfit.decide.workload.in_place.fates import Fate, Replaced, ToBeResized, Waits, fate_of

RESIZED, REPLACING, NOT_IN_PLACE = "ResizedInPlace", "ReplacingPod", "RolloutNotInPlace"
RETRY_SECONDS = 30.0
"""After the API server would not tell what a new pod would get."""
_REFUSED = (400, 403, 422)


class InPlaceRollouts:
    """For one controller, as which `client` writes."""

    def __init__(
        self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock, off: bool = False
    ) -> None:
        """`off`: somebody else follows the annotation, so every rollout is as ever."""
        self._client, self._recorder, self._clock, self._off = client, recorder, clock, off
        self.namespaces: Informer[Namespace] = informers.of(Namespace)
        self._refused: dict[Key, dict[str, tuple[PodSpec, str]]] = {}  # by workload, then by UID of the pod
        self._told: dict[Key, set[str]] = {}  # what was said of a rollout that is under way

    def asked(self, owner: Object) -> Asked | None:
        if self._off:
            return None
        namespace = self.namespaces.get(owner.metadata.namespace)
        said = asked(owner.metadata.annotations, namespace.metadata.annotations if namespace is not None else {})
        if said is not None and said.problem:
            self._tell(owner, said.problem, said.problem)
        return said

    def forget(self, key: Key) -> None:
        """No rollout of this workload is under way."""
        self._refused.pop(key, None)
        self._told.pop(key, None)

    async def fates(self, owner: Object, made: Pod, pods: Iterable[Pod], asked_for: Asked) -> dict[str, Fate]:
        """The fates of pods that are fit for it, by UID; `made` is a new pod as the controller would make it."""
        key, now = key_of(owner), self._clock.now()
        try:
            admitted = await self._client.create(made, owner.metadata.namespace, dry_run=True)
        except ApiError as error:
            if error.code not in _REFUSED:
                raise
            if not namespace_ends(error):
                text = f"Pods are not resized yet, as the API server would not make a new one: {error.message}"
                self._tell(owner, text, error.reason)
            return {pod.metadata.uid: Waits(RETRY_SECONDS) for pod in pods}
        known = self._refused.get(key, {})
        fates, still = dict[str, Fate](), dict[str, tuple[PodSpec, str]]()
        for pod in pods:
            uid, refusal = pod.metadata.uid, ""
            fate = fate_of(pod, admitted, deadline=asked_for.deadline, now=now)
            if isinstance(fate, ToBeResized) and uid in known and known[uid][0] == fate.wanted.spec:
                still[uid], refusal = known[uid], known[uid][1]
                fate = fate_of(pod, admitted, deadline=asked_for.deadline, now=now, refused=refusal)
            fates[uid] = fate
            if isinstance(fate, Replaced):
                self._tell(owner, f"Pod {pod.metadata.name} is replaced: {fate.why}", uid, reason=REPLACING)
        self._refused[key] = still
        return fates

    async def resize(self, owner: Object, resizes: Iterable[ToBeResized]) -> bool:
        """Whether one was refused, so that another look is due."""
        refused = False
        for resize in resizes:
            try:
                await self._client.update(resize.wanted, subresource="resize")
            except ApiError as error:
                if error.code not in _REFUSED:
                    raise
                wanted, refused = resize.wanted, True
                self._refused.setdefault(key_of(owner), {})[wanted.metadata.uid] = wanted.spec, error.message
        return refused

    async def give(self, workload: Object, pod: Pod, owner: Object, labels: dict[str, str]) -> None:
        """Make it a pod of `owner`, with these labels, in one write. Raises a conflict when it is not as it was."""
        meta, reference = pod.metadata, reference_to(owner)
        others = [known for known in meta.owner_references if not known.controller]
        patch: dict[str, Any] = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "labels": labels,
                "ownerReferences": [to_dict(known) for known in (reference, *others)],
            }
        }
        await self._client.patch(Pod, meta.name, meta.namespace, patch, content_type=MERGE_PATCH)
        revision = ", ".join(f"{name}={value}" for name, value in labels.items())
        self._recorder.event(workload, NORMAL, RESIZED, f"Pod {meta.name} was resized in place: it has {revision} now")

    async def delete(self, pod: Pod) -> None:
        """Whoever makes pods makes another."""
        meta = pod.metadata
        try:
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise

    def _tell(self, owner: Object, text: str, once: str, *, reason: str = NOT_IN_PLACE) -> None:
        """`once` in a rollout."""
        told = self._told.setdefault(key_of(owner), set())
        if once not in told:
            told.add(once)
            self._recorder.event(owner, WARNING, reason, text)
