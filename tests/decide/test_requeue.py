"""Which change wakes a pod that fitted nowhere."""

from typing import Any

import pytest

from podfit.decide.placement.place import Unschedulable, place
from podfit.decide.placement.requeue import (
    Change,
    NodeChanged,
    NodeGone,
    PodCame,
    PodGone,
    PodRelabelled,
    PodShrank,
    VolumesChanged,
    Waiting,
    own_change_helps,
    worth_retrying,
)
from podfit.decide.placement.view import NodeInfo, Resident
from support.placing import ZONE, a_node, a_pod, affinity, spreading

WEB = {"app": "web"}
TAINT = [{"key": "k", "effect": "NoSchedule"}]
CPU, MEMORY = frozenset({"cpu"}), frozenset({"memory"})


def waiting(pod: Resident, *views: NodeInfo) -> Waiting:
    verdict = place(pod, views)
    assert isinstance(verdict, Unschedulable)
    return Waiting(pod, verdict)


FULL = a_node("n1", a_pod("q", cpu="4"))
LACKS_CPU = waiting(a_pod(cpu="1"), FULL)
TAINTED = waiting(a_pod(), a_node("n1", taints=TAINT))
LONELY = waiting(a_pod(affinity=affinity("podAffinity", "web")), a_node("n1"))
REPELLED = waiting(a_pod(labels=WEB), a_node("n1", a_pod("q", affinity=affinity("podAntiAffinity", "web"))))
UNEVEN = waiting(
    a_pod(labels=WEB, cpu="1", topologySpreadConstraints=spreading("web")),
    a_node("n1", a_pod("q", labels=WEB), zone="a"),
    a_node("n2", zone="b", cpu="0"),
)
NO_VOLUME = waiting(a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]), a_node("n1"))
NO_NODES = waiting(a_pod())
STRANGER, FRIEND = a_pod("x").pod, a_pod("x", labels=WEB).pod
HERMIT = a_pod("x", affinity=affinity("podAntiAffinity", "web")).pod


def node(**given: Any) -> Any:
    return a_node("n1", **given).node


@pytest.mark.row("R-082", "R-083")
@pytest.mark.parametrize(
    ("who", "change", "wakes"),
    [
        (LACKS_CPU, PodShrank(CPU), True),
        (LACKS_CPU, PodShrank(MEMORY), False),
        (TAINTED, PodShrank(CPU), False),
        (LACKS_CPU, PodGone(STRANGER), True),
        (TAINTED, PodGone(STRANGER), False),
        (LACKS_CPU, PodCame(STRANGER), False),
        (LACKS_CPU, PodRelabelled(STRANGER, FRIEND), False),
        (LACKS_CPU, NodeChanged(None, node()), True),
        (LACKS_CPU, NodeChanged(None, node(cpu="500m")), False),
        (LACKS_CPU, NodeChanged(node(cpu="2"), node(cpu="3")), True),
        (LACKS_CPU, NodeChanged(node(cpu="3"), node(cpu="2")), False),
        (LACKS_CPU, NodeChanged(node(memory="1Gi"), node(memory="2Gi")), False),
        (LACKS_CPU, NodeChanged(node(pods="1"), node(pods="2")), True),
        (LACKS_CPU, NodeChanged(node(), node(labels={"a": "b"})), False),
        (TAINTED, NodeChanged(node(taints=TAINT), node()), True),
        (TAINTED, NodeChanged(node(), node(cpu="8")), False),
        (TAINTED, NodeChanged(None, node(taints=TAINT)), False),
        (LONELY, PodCame(FRIEND), True),
        (LONELY, PodCame(STRANGER), False),
        (LONELY, PodRelabelled(STRANGER, FRIEND), True),
        (LONELY, PodGone(FRIEND), False),
        (REPELLED, PodGone(HERMIT), True),
        (REPELLED, PodGone(STRANGER), False),
        (UNEVEN, PodCame(FRIEND), True),
        (UNEVEN, PodCame(STRANGER), False),
        (UNEVEN, NodeGone(node()), True),
        (LACKS_CPU, NodeGone(node()), False),
        (UNEVEN, NodeChanged(node(), node(labels={ZONE: "c"})), True),
        (NO_VOLUME, VolumesChanged(), True),
        (NO_VOLUME, NodeChanged(None, node()), True),
        (NO_VOLUME, NodeChanged(node(), node(labels={ZONE: "c"})), True),
        (NO_VOLUME, NodeChanged(node(), node(cpu="8")), False),
        (LACKS_CPU, VolumesChanged(), False),
        (NO_NODES, NodeChanged(None, node()), True),
        (NO_NODES, PodGone(STRANGER), False),
    ],
)
def test_a_change_wakes_whom_it_can_help(who: Waiting, change: Change, wakes: bool) -> None:
    assert worth_retrying(who, change) is wakes


@pytest.mark.row("R-081")
@pytest.mark.parametrize(
    ("who", "new", "helps"),
    [
        (LACKS_CPU, a_pod(cpu="500m"), True),
        (LACKS_CPU, a_pod(cpu="2"), False),
        (LACKS_CPU, a_pod(cpu="1", labels=WEB), False),
        (TAINTED, a_pod(tolerations=[{"operator": "Exists"}]), True),
        (TAINTED, a_pod(), False),
        (LONELY, a_pod(labels=WEB, affinity=affinity("podAffinity", "web")), True),
    ],
)
def test_a_change_of_the_pod_itself(who: Waiting, new: Resident, helps: bool) -> None:
    assert own_change_helps(who, who.subject.pod, new.pod, new.requests) is helps
