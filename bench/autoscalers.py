"""What autoscalers decide, in the decisions alone: the HPA's pass over many autoscalers with many pods each, by both
rules, and the cluster autoscaler's look at many nodes with many pods that wait.

    python bench/autoscalers.py [--autoscalers 1000] [--pods 30] [--nodes 1000] [--pending 1000] [--rounds 5]

What is measured begins with pods and samples as they are held in memory and ends with the new status: selecting the
pods, finding rivals, computing the metric, windows and limits, conditions. Process time of the quickest round.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from measure import machine, table
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.selectors import Matcher, Selector, from_map
from podfit.decide.autoscaling.horizontal.claims import Claims
from podfit.decide.autoscaling.horizontal.model import Memory, Settings
from podfit.decide.autoscaling.horizontal.passing import View, finish, propose
from podfit.decide.autoscaling.horizontal.samples import PodUsage, of_resource
from podfit.decide.capacity.look import Look, Looked, Moment, ScaleUp, State
from podfit.decide.capacity.machine import step
from podfit.decide.capacity.node_groups import Instance, InstanceState, NodeGroup
from podfit.decide.capacity.settings import AutoscalerSettings

NOW = 1_770_000_000.0
GOAL, LOOK_GOAL = "1.00", "2.00"
STAMP = "2026-01-01T00:00:00Z"


def autoscaler(index: int) -> HorizontalPodAutoscaler:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web-{index}"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    metric["resource"]["target"]["averageUtilization"] = 80  # type: ignore[index]
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 100, "metrics": [metric]}
    return convert({"metadata": {"name": f"web-{index}", "namespace": "shop"}, "spec": spec}, HorizontalPodAutoscaler)


def pods(index: int, number: int) -> tuple[Pod, ...]:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    status: dict[str, Any] = {
        "phase": "Running",
        "startTime": STAMP,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": STAMP}],
        "containerStatuses": [{"name": "app", "resources": resources}],
    }
    spec = {"containers": [{"name": "app", "image": "i", "resources": resources}]}
    labels = {"app": f"web-{index}", "tier": "front", "pod-template-hash": "abc"}
    return tuple(
        convert({"metadata": {"name": f"web-{index}-{one}", "labels": labels}, "spec": spec, "status": status}, Pod)
        for one in range(number)
    )


def usages(number: int) -> tuple[PodUsage, ...]:
    return tuple(
        convert(
            {
                "metadata": {"name": f"web-{one}"},
                "timestamp": STAMP,
                "window": "15s",
                "containers": [{"name": "app", "usage": {"cpu": f"{70 + one % 20}m", "memory": "64Mi"}}],
            },
            PodUsage,
        )
        for one in range(number)
    )


def passed(
    every: Sequence[tuple[HorizontalPodAutoscaler, Selector, tuple[Pod, ...], tuple[PodUsage, ...]]],
    claims: Claims,
    memories: dict[str, Memory],
    settings: Settings,
    now: float,
) -> list[HorizontalPodAutoscaler]:
    found = []
    for hpa, selector, its, used in every:
        key, matcher = (hpa.metadata.namespace, hpa.metadata.name), Matcher(selector.requirements)
        selected = [pod for pod in its if matcher.matches(pod.metadata.labels)]
        claims.claim(key, selector)
        rivals = tuple("/".join(rival) for rival in claims.rivals(key, selected))
        view = View(
            autoscaler=hpa,
            replicas=len(selected),
            reported=len(selected),
            selector="app=web",
            pods=selected,
            rivals=rivals,
            memory=memories.get(hpa.metadata.name, Memory()),
            settings=settings,
        )
        outcome = finish(propose(view, [of_resource(used, "cpu")], now), now)
        memories[hpa.metadata.name] = outcome.memory
        found.append(replace(hpa, status=outcome.status))
    return found


def measured(number: int, size: int, rounds: int, settings: Settings) -> float:
    """Seconds of CPU of the quickest pass over all."""
    every = []
    for index in range(number):
        its, used = pods(index, size), usages(size)
        named = [
            replace(one, metadata=replace(one.metadata, name=pod.metadata.name))
            for one, pod in zip(used, its, strict=True)
        ]
        every.append((autoscaler(index), Selector(from_map({"app": f"web-{index}"}).requirements), its, tuple(named)))
    claims, memories, best = Claims(), dict[str, Memory](), float("inf")
    for turn in range(rounds + 1):
        before = time.process_time()
        found = passed(every, claims, memories, settings, NOW + 15 * turn)
        if turn:  # the first writes every condition
            best = min(best, time.process_time() - before)
        every = [(hpa, *rest) for hpa, (_, *rest) in zip(found, every, strict=True)]  # type: ignore[misc]
    return best


def a_node(name: str) -> Node:
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    meta = {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}, "creationTimestamp": STAMP}
    status = {"capacity": size, "allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
    return convert({"metadata": meta, "spec": {"providerID": f"fake:{name}"}, "status": status}, Node)


def a_pod(name: str, owner: str, cpu: str, node: str = "") -> Pod:
    """One that runs, or that the scheduler has found no node for."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": owner}, "creationTimestamp": STAMP}
    resources = {"requests": {"cpu": cpu, "memory": "256Mi"}}
    spec = {"nodeName": node, "containers": [{"name": "app", "image": "i", "resources": resources}]}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"phase": "Running"} if node else {"phase": "Pending", "conditions": [waits]}
    return convert({"metadata": {**meta, "ownerReferences": [reference]}, "spec": spec, "status": status}, Pod)


def looked(nodes: int, pending: int, rounds: int, shapes: int) -> tuple[float, int]:
    """Seconds of CPU of the quickest look, and the nodes that it asks for. Each node has three pods, so that each is
    judged for removal as well; the pods that wait are of so many workloads."""
    names = [f"n{number}" for number in range(nodes)]
    running = [a_pod(f"{name}-{one}", f"web-{one}", "1100m", name) for name in names for one in range(3)]
    waiting = [a_pod(f"p{one}", f"new-{one % shapes}", f"{900 + 10 * (one % shapes)}m") for one in range(pending)]
    instances = tuple(Instance(id=f"fake:{name}", state=InstanceState.RUNNING) for name in names)
    groups = tuple(
        NodeGroup(
            id=f"group-{number}",
            min_size=0,
            max_size=5000,
            target=0 if number else nodes,
            instances=() if number else instances,
            template=a_node(f"template-{number}"),
        )
        for number in range(3)
    )
    seen = tuple(map(a_node, names))
    best, asked = float("inf"), 0
    for turn in range(rounds):
        look = Look(nodes=seen, pods=(*running, *waiting), groups=groups, members=dict.fromkeys(names, "group-0"))
        moment = Moment(datetime.fromtimestamp(NOW + turn, UTC), float(turn))
        before = time.process_time()
        _, effects = step(State(), Looked(look), moment, AutoscalerSettings())
        best = min(best, time.process_time() - before)
        asked = sum(one.by for effect in effects if isinstance(effect, ScaleUp) for one in effect.increases)
    return best, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autoscalers", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pending", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(machine())
    rows = [["a pass over all", "HPAs", "pods each", "CPU s", "us for each pod", "goal s"]]
    for name, compatible in (("podfit's rules", False), ("upstream's rules", True)):
        seconds = measured(given.autoscalers, given.pods, given.rounds, Settings(upstream_compatible=compatible))
        each = seconds / given.autoscalers / given.pods * 1e6
        rows.append([name, str(given.autoscalers), str(given.pods), f"{seconds:.2f}", f"{each:.1f}", GOAL])
    table(rows)
    rows = [["a look of the cluster autoscaler", "nodes", "pods that wait", "nodes asked for", "CPU s", "goal s"]]
    for shapes in (1, 10, 50):
        seconds, asked = looked(given.nodes, given.pending, given.rounds, shapes)
        name = f"pods of {shapes} workload{'s' * (shapes > 1)}"
        rows.append([name, str(given.nodes), str(given.pending), str(asked), f"{seconds:.2f}", LOOK_GOAL])
    table(rows)


if __name__ == "__main__":
    main()
