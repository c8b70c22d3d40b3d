"""An HPA and a VPA of one workload, by their decisions: the HPA's pass, the recommender, admission, the updater's run.

What they answer is handed in (usage by pod) and what they do is handed out (replicas, sizes, actions): `hpa_days` and
`autoscaled_days` are the worlds around them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.selectors import Selector, from_map
from podfit.core.times import format_time
from podfit.decide.autoscaling import update
from podfit.decide.autoscaling.actions import Action, ActionOutcome, RememberInfeasible
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import SCALE
from podfit.decide.autoscaling.horizontal.model import Memory, Sample, Settings, View
from podfit.decide.autoscaling.horizontal.passing import finish, propose
from podfit.decide.autoscaling.nodes_and_autoscalers import Around, around, beside_autoscalers, capped_to_nodes
from podfit.decide.autoscaling.status import Estimated, VpaInputs, status
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.decide.pod.resize_state import ResizeStage, ResizeState

NAMESPACE = "shop"
SAMPLED = 60.0
GATES = Gates(in_place=True)


class Wish(msgspec.Struct, frozen=True):
    """What somebody has asked for: millicores, percent, replicas; `mode` is the annotation `podfit.dev/scale`, empty
    for none, `allowed` the VPA's maximum of a pod that grows first."""

    request: int
    target: int
    least: int
    most: int
    mode: str
    allowed: int


class ScaledWorkload:
    """`replicas` and `template` (millicores) are what both want by now."""

    def __init__(
        self,
        name: str,
        wish: Wish,
        now: float,
        *,
        upstream: bool = False,
        pass_seconds: float = 15.0,
        state: ClusterState | None = None,
    ) -> None:
        """`state` is the recommender's, which it may share with others."""
        self.name, self.wish, self.upstream = name, wish, upstream
        self.settings = Settings(upstream_compatible=upstream)
        self.labels, self.key = {"app": name}, VpaKey(NAMESPACE, name)
        self.owner = ObjectIdentity("apps", "ReplicaSet", NAMESPACE, f"{name}-1", f"{name}-owner")
        self.hpa, self.vpa, self.memory = self._horizontal(), self._vertical(), Memory()
        self.replicas, self.template = wish.least, wish.request
        self.state = state or ClusterState(gates=GATES, upstream_compatible=upstream)
        self.state.set_vpa(self.key, Selector(from_map(self.labels).requirements), None)
        self._window, self._next_sample = pass_seconds, now
        self._since: dict[str, datetime] = {}
        self._infeasible: dict[str, RecommendedPodResources] = {}

    @property
    def target(self) -> dict[str, str]:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}

    def _horizontal(self) -> HorizontalPodAutoscaler:
        wish = self.wish
        wanted = {"type": "Utilization", "averageUtilization": wish.target}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": wanted}}
        spec = {"scaleTargetRef": self.target, "minReplicas": wish.least, "maxReplicas": wish.most, "metrics": [metric]}
        notes = {SCALE: wish.mode} if wish.mode and not self.upstream else {}
        metadata = {"name": self.name, "namespace": NAMESPACE, "generation": 1, "annotations": notes}
        return convert({"metadata": metadata, "spec": spec}, HorizontalPodAutoscaler)

    def _vertical(self) -> VerticalPodAutoscaler:
        policy = {"updateMode": "InPlaceOrRecreate", "minReplicas": 1}
        spec: dict[str, Any] = {"targetRef": self.target, "updatePolicy": policy}
        if self.wish.mode == VERTICAL_FIRST:
            most = {"containerName": "*", "maxAllowed": {"cpu": f"{self.wish.allowed}m"}}
            spec["resourcePolicy"] = {"containerPolicies": [most]}
        document = {"metadata": {"name": self.name, "namespace": NAMESPACE}, "spec": spec}
        return convert(document, VerticalPodAutoscaler)

    # ------------------------------------------------------------------ pods

    def came(self, pod: str, now: float) -> None:
        self.state.set_pod(PodKey(NAMESPACE, pod), self.labels, ["app"], now)

    def went(self, pod: str) -> None:
        self.state.remove_pod(PodKey(NAMESPACE, pod))

    # ------------------------------------------------------------------ the HPA

    def scale(
        self, pods: Sequence[Pod], used: Mapping[str, int], room: Mapping[str, Mapping[str, int]], now: float
    ) -> None:
        """`used` are millicores by pod, `room` by how much pods could grow where they are."""
        view = View(
            autoscaler=self.hpa,
            replicas=self.replicas,
            reported=len(pods),
            selector=f"app={self.name}",
            pods=pods,
            memory=self.memory,
            settings=self.settings,
            vpas=[self.vpa],
            room=room,
        )
        samples = {name: Sample(amount, now, self._window) for name, amount in used.items()}
        outcome = finish(propose(view, [samples], now), now)
        metadata = self.hpa.metadata
        if outcome.annotations:
            metadata = replace(metadata, annotations={**metadata.annotations, **outcome.annotations})
        self.hpa = replace(self.hpa, metadata=metadata, status=outcome.status)
        self.memory = outcome.memory
        if outcome.desired is not None:
            self.replicas = outcome.desired

    # ------------------------------------------------------------------ the VPA

    def sample(self, used: Mapping[str, int], now: float) -> None:
        """Once a minute, also of the minutes since the last look, in which nothing changed."""
        slots = [slot for name in used if (slot := self.state.slot(PodKey(NAMESPACE, name), "app")) is not None]
        while self._next_sample <= now:
            if slots:
                times, amounts = np.full(len(slots), self._next_sample), np.array(list(used.values()), dtype=float)
                self.state.model.add_cpu(np.array(slots, dtype=np.intp), amounts, times)
            self._next_sample += SAMPLED

    def recommend(self, now: float, nodes: Iterable[Node] = (), known: Estimated | None = None) -> None:
        """`known` is what the recommender has found, where it was asked about several at once."""
        known = known if known is not None else self.state.found({self.key: {}})[self.key]
        beside, text = Around() if self.upstream else around(nodes, [self.hpa]), stamp(now)
        told = status(self.vpa, VpaInputs(known, self.state.pods_of(self.key)), text, beside.most)
        if not self.upstream:
            bounded = capped_to_nodes(told, beside.most, text)
            told = beside_autoscalers(bounded, self.vpa, beside, beside.most, text)
        self.vpa = replace(self.vpa, status=told)
        recommended = told.recommendation.container_recommendations if told.recommendation else ()
        if recommended and "cpu" in recommended[0].target:
            self.template = recommended[0].target["cpu"].milli()

    def update(
        self,
        pods: Sequence[Pod],
        now: float,
        carry_out: Callable[[Action], ActionOutcome],
        *,
        places_first: bool = False,
    ) -> None:
        """The updater's run over `pods` that have a node; the caller carries out what it asks for."""
        moment = datetime.fromtimestamp(now, UTC)
        resizing = {pod.metadata.uid for pod in pods if ResizeState.of(pod).stage is not ResizeStage.NONE}
        self._since = {uid: self._since.get(uid, moment) for uid in resizing}
        there = {pod.metadata.uid for pod in pods}
        self._infeasible = {uid: size for uid, size in self._infeasible.items() if uid in there}
        view = update.View(
            vpa=self.vpa,
            pods=tuple(pods),
            configured={self.owner: self.replicas},
            now=moment,
            since=self._since,
            infeasible=self._infeasible,
            places_first=places_first,
        )
        run = update.run(view, UpdateSettings(gates=GATES, upstream_compatible=self.upstream))
        outcome: ActionOutcome | None = None
        while True:
            try:
                action = run.send(outcome) if outcome is not None else next(run)
            except StopIteration:
                return
            if isinstance(action, RememberInfeasible):
                self._infeasible[action.pod.metadata.uid] = action.recommendation
            outcome = carry_out(action)


def stamp(time: float) -> str:
    return format_time(datetime.fromtimestamp(time, UTC))
