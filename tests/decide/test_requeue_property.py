"""No change that lets a waiting pod in goes unheard, whatever rules it waits for."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.codec import convert
from podfit.decide.placement.place import Placed, Unschedulable, place
from podfit.decide.placement.requeue import (
    Change,
    NodeChanged,
    NodeGone,
    PodCame,
    PodGone,
    PodRelabelled,
    PodShrank,
    Waiting,
    shrunk,
    worth_retrying,
)
from podfit.decide.placement.view import NodeInfo, Resident
from support.placing import HOSTNAME, ZONE, a_node, a_pod, affinity, spreading

apps = st.sampled_from(["x", "y"])
keys = st.sampled_from([HOSTNAME, ZONE])
amounts = st.sampled_from(["", "1", "2"])
TAINT = {"key": "k", "effect": "NoSchedule"}


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """None, one or several rules about other pods."""
    spec: dict[str, Any] = {}
    more: dict[str, Any]
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["podAffinity", "podAntiAffinity"]))
        spec["affinity"] = affinity(kind, draw(apps), draw(keys))
    if draw(st.integers(0, 2)) == 0:
        more = {"minDomains": 2} if draw(st.booleans()) else {}
        more |= {"nodeTaintsPolicy": "Honor"} if draw(st.booleans()) else {}
        spec["topologySpreadConstraints"] = spreading(draw(apps), draw(keys), **more)
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"pool": "a"}
    return spec


@st.composite
def residents(draw: st.DrawFn, name: str) -> Resident:
    port = [{"containerPort": 1, "hostPort": 80}] if draw(st.integers(0, 4)) == 0 else []
    requests = {"cpu": cpu} if (cpu := draw(amounts)) else {}
    container = {"name": "c", "resources": {"requests": requests}, "ports": port}
    return a_pod(name, labels={"app": draw(apps)}, containers=[container], **draw(rules()))


@st.composite
def nodes(draw: st.DrawFn, name: str, inhabitants: bool = True) -> NodeInfo:
    count = draw(st.integers(0, 3)) if inhabitants else 0
    crowd = [draw(residents(f"{name}-{index}")) for index in range(count)]
    spec: dict[str, Any] = {"taints": [TAINT]} if draw(st.integers(0, 3)) == 0 else {}
    if draw(st.integers(0, 4)) == 0:
        spec["unschedulable"] = True
    labels = {"pool": draw(st.sampled_from(["a", "b"]))}
    zone, cpu = draw(st.sampled_from(["", "u", "v"])), draw(st.sampled_from(["1", "2", "4"]))
    return a_node(name, *crowd, cpu=cpu, pods=draw(st.sampled_from(["2", "9"])), zone=zone, labels=labels, **spec)


Step = tuple[Change, list[NodeInfo]]


@st.composite
def steps(draw: st.DrawFn, views: list[NodeInfo]) -> Step:
    """One change of the cluster, and the cluster after it."""
    index = draw(st.integers(0, len(views) - 1))
    view = views[index]

    def with_view(*changed: NodeInfo) -> list[NodeInfo]:
        return [*views[:index], *changed, *views[index + 1 :]]

    kinds = ["came", "node", "new", "gone"] + (["left", "shrank", "relabelled"] if view.residents else [])
    match draw(st.sampled_from(kinds)):
        case "came":
            pod = draw(residents("newcomer"))
            return PodCame(pod.pod), with_view(view.plus(pod))
        case "node":
            other = draw(nodes(view.name, inhabitants=False))
            return NodeChanged(view.node, other.node), with_view(NodeInfo.of(other.node, view.residents))
        case "new":
            other = draw(nodes("n9", inhabitants=False))
            return NodeChanged(None, other.node), [*views, other]
        case "gone":
            return NodeGone(view.node), with_view()
        case kind:
            chosen = draw(st.integers(0, len(view.residents) - 1))
            old = view.residents[chosen]
            rest = [resident for resident in view.residents if resident is not old]
            if kind == "left":
                return PodGone(old.pod), with_view(view.with_residents(rest))
            spec = {"containers": [{"name": "c"}]} if kind == "shrank" else {}
            new = _changed(old, labels=old.pod.metadata.labels if spec else {"app": draw(apps)}, **spec)
            after = with_view(view.with_residents([*rest, new]))
            if kind == "relabelled":
                return PodRelabelled(old.pod, new.pod), after
            return PodShrank(shrunk(old.requests, new.requests)), after


def _changed(old: Resident, *, labels: dict[str, str], **spec: Any) -> Resident:
    pod = replace(old.pod, metadata=replace(old.pod.metadata, labels=labels))
    if spec:
        containers = convert(spec, PodSpec).containers
        kept = (replace(containers[0], ports=old.pod.spec.containers[0].ports),)
        pod = replace(pod, spec=replace(pod.spec, containers=kept))
    return Resident.of(pod)


@settings(max_examples=100)
@given(st.data())
def test_what_lets_it_in_wakes_it(data: st.DataObject) -> None:
    _hears(data)


@pytest.mark.campaign
@pytest.mark.timeout(600)
@settings(max_examples=5000)
@given(st.data())
def test_what_lets_it_in_wakes_it_over_and_over(data: st.DataObject) -> None:
    _hears(data)


def _hears(data: st.DataObject) -> None:
    views = [data.draw(nodes(f"n{index}")) for index in range(data.draw(st.integers(1, 3)))]
    pod = data.draw(residents("p"))
    verdict = place(pod, views)
    if isinstance(verdict, Placed):
        return
    assert isinstance(verdict, Unschedulable)
    change, after = data.draw(steps(views))
    if isinstance(place(pod, after), Placed):
        assert worth_retrying(Waiting(pod, verdict), change)
