"""Replays a recorded history of one VPA through the model, as its recommender would (tests/golden/vpa/README.md)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, RecommendedPodResources
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.flags import (
    EstimatorFlags,
    MemoryFlags,
    OomFlags,
    RecommenderFlags,
    RenderFlags,
    ResourceFlags,
)
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from support.golden import Case

VPA = VpaKey("ns", "vpa")
RESTART, PODS, SAMPLE, OOM, DELETED, EVALUATE = range(6)


def flags_of(given: Mapping[str, Any]) -> RecommenderFlags:
    def resource(name: str) -> ResourceFlags:
        bound = "recommendation-{}-bound-" + name + "-percentile"
        return ResourceFlags(
            target=given[f"target-{name}-percentile"],
            lower=given[bound.format("lower")],
            upper=given[bound.format("upper")],
            confidence_interval=given[f"confidence-interval-{name}_s"],
        )

    def most(name: str) -> Quantity | None:
        text = given[f"container-recommendation-max-allowed-{name}"]
        return Quantity.parse(text) if text else None

    return RecommenderFlags(
        estimator=EstimatorFlags(
            cpu=resource("cpu"),
            memory=resource("memory"),
            margin=given["recommendation-margin-fraction"],
            min_cpu_millicores=given["pod-recommendation-min-cpu-millicores"],
            min_memory_mb=given["pod-recommendation-min-memory-mb"],
        ),
        render=RenderFlags(
            round_cpu_millicores=given["round-cpu-millicores"],
            round_memory_bytes=given["round-memory-bytes"],
            humanize_memory=given["humanize-memory"],
            integer_cpu=given["cpu-integer-post-processor-enabled"],
            max_allowed_cpu=most("cpu"),
            max_allowed_memory=most("memory"),
        ),
        oom=OomFlags(bump_up_ratio=given["oom-bump-up-ratio"], min_bump_up_bytes=given["oom-min-bump-up-bytes"]),
        memory=MemoryFlags(
            interval=given["memory-aggregation-interval_s"], count=given["memory-aggregation-interval-count"]
        ),
        cpu_half_life=given["cpu-histogram-decay-half-life_s"],
        memory_half_life=given["memory-histogram-decay-half-life_s"],
    )


def events(case: Case) -> list[tuple[float, int, int, Any]]:
    """In the order in which they happened: time, class, place in its list, what."""
    found: list[tuple[float, int, int, Any]] = [
        (restart, RESTART, 0, None) for restart in case.get("recommender_restarts", ())
    ]
    for place, pod in enumerate(case["pods"]):
        found.append((pod["added_t"], PODS, place, (pod, pod["labels"])))
        if "relabel" in pod:
            found.append((pod["relabel"]["t"], PODS, place, (pod, pod["relabel"]["labels"])))
        if "deleted_t" in pod:
            found.append((pod["deleted_t"], DELETED, place, pod))
    for place, series in enumerate(case["series"]):
        for step, value in enumerate(series["values"]):
            if value is not None:
                found.append(
                    (series["t0"] + step * series["step_s"], SAMPLE, place, {**series, "values": (), "v": value})
                )
    found += [(oom["t"], OOM, place, oom) for place, oom in enumerate(case.get("ooms", ()))]
    found += [(time, EVALUATE, 0, None) for time in case["evaluate_at"]]
    return sorted(found, key=lambda event: event[:3])


class Replay:
    """`state` after each evaluation; refused samples and OOMs are counted."""

    def __init__(self, case: Case) -> None:
        self.case, self.flags = case, flags_of(case["flags"])
        self.gates = Gates(per_vpa_config=case["flags"]["feature-gate-PerVPAConfig"])
        policy = case.get("resourcePolicy")
        self.policy = convert(policy, PodResourcePolicy) if policy else None
        self.annotations: Mapping[str, str] = case.get("vpa_annotations") or {}
        self.rejected_samples = self.rejected_ooms = 0
        self.pods: dict[str, tuple[Case, Mapping[str, str]]] = {}
        self.state = self._new_state()

    def _new_state(self) -> ClusterState:
        state = ClusterState(self.flags, self.gates, upstream_compatible=True)
        state.set_vpa(VPA, from_map(self.case["selector"]), self.policy)
        return state

    def evaluations(self) -> Iterator[tuple[float, RecommendedPodResources]]:
        samples: list[Case] = []
        for time, sort, _, what in events(self.case):
            if sort == SAMPLE:
                samples.append({**what, "t": time})
                continue
            self._samples(samples)
            samples = []
            match sort:
                case 0:
                    self._restart(time)
                case 1:
                    self._pod(what[0], what[1], time)
                case 3:
                    self._oom(what)
                case 4:
                    self.state.remove_pod(PodKey("ns", what["name"]))
                    del self.pods[what["name"]]
                case _:
                    self._samples(self.case.get("raw_samples", ()))
                    yield time, self.state.recommend({VPA: self.annotations})[VPA]

    def _restart(self, time: float) -> None:
        checkpoints = dict(self.state.checkpoints([VPA], time))[VPA]
        self.state = self._new_state()
        for checkpoint in checkpoints:
            self.state.restore(checkpoint, time)
        for pod, labels in self.pods.values():
            self._pod(pod, labels, time)

    def _pod(self, pod: Case, labels: Mapping[str, str], time: float) -> None:
        self.pods[pod["name"]] = pod, labels
        self.state.set_pod(
            PodKey("ns", pod["name"]), labels, [container["name"] for container in pod["containers"]], time
        )

    def _samples(self, samples: Sequence[Case]) -> None:
        """Several at once, in their order."""
        model = self.state.model
        for resource, add in (("cpu", model.add_cpu), ("memory", model.add_memory)):
            every = [sample for sample in samples if sample["resource"] == resource]
            slots = [self.state.slot(PodKey("ns", sample["pod"]), sample["container"]) for sample in every]
            amounts, times = ([float(sample[field]) for sample in every] for field in ("v", "t"))
            taken = add(np.array(slots, dtype=np.intp), np.array(amounts), np.array(times))
            self.rejected_samples += len(every) - int(taken.sum())

    def _oom(self, oom: Case) -> None:
        slot = self.state.slot(PodKey("ns", oom["pod"]), oom["container"])
        taken = slot is not None and self.state.model.add_oom(slot, oom["memory_bytes"], float(oom["oom_t"]))
        self.rejected_ooms += not taken
