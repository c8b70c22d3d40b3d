"""What each node scores for topology spread that only prefers, as upstream's PodTopologySpread and its defaults do."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.core.selectors import Requirement
from podfit.decide.placement.default_spread import (
    SYSTEM_DEFAULTING,
    DefaultSpread,
    SpreadDefaulting,
    default_selector,
    default_spread,
    owner_of,
)
from podfit.decide.placement.place import Placed, Unschedulable, place
from podfit.decide.placement.requeue import PodGone, Waiting, worth_retrying
from podfit.decide.placement.score import DEFAULT_WEIGHTS, scores
from podfit.decide.placement.soft_spread import spread_evenly
from podfit.decide.placement.view import NodeInfo, Resident
from support.placing import HOSTNAME, ZONE, a_node, a_pod, spreading

WEB = {"app": "web"}
SELECTED = (Requirement("app", "In", ("web",)),)


def selected(defaulting: SpreadDefaulting = SYSTEM_DEFAULTING, **pod: Any) -> Resident:
    """A pod that a Service selects by app=web, and that names no constraint."""
    given = a_pod(labels=WEB, **pod)
    return Resident.of(given.pod, placed=False, default_spread=DefaultSpread(defaulting, SELECTED))


def webs(count: int) -> list[Resident]:
    return [a_pod(f"w{number}", labels=WEB) for number in range(count)]


def listed(*constraints: tuple[str, int, str]) -> SpreadDefaulting:
    return SpreadDefaulting(
        tuple(
            TopologySpreadConstraint(topology_key=key, max_skew=skew, when_unsatisfiable=action)
            for key, skew, action in constraints
        ),
        of_system=False,
    )


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # two hosts without zones: ln 4 for a pod on the host, and 2 for maxSkew 3; costs 2 and 3
        ({"a": ("", 0), "b": ("", 1)}, [100, 66]),
        # nobody is there yet: 2 and 4 for the two maxSkews, on every node
        ({"a": ("x", 0), "b": ("y", 0)}, [100, 100]),
        # ln 5 for a pod on the host, ln 4 for one in the zone; costs 13, 12, 6
        ({"a": ("x", 2), "b": ("x", 1), "c": ("y", 0)}, [46, 53, 100]),
        # a node without a zone is scored by its hostname alone; costs 2, 9, 6
        ({"a": ("", 0), "b": ("x", 1), "c": ("y", 0)}, [100, 22, 55]),
        # ln 6 for a pod on the host, ln 5 for one in the zone; costs 16, 11, 9, 6
        ({"a": ("x", 3), "b": ("x", 0), "c": ("y", 1), "d": ("z", 0)}, [37, 68, 81, 100]),
    ],
)
def test_the_defaults_of_the_system(nodes: dict[str, tuple[str, int]], expected: list[int]) -> None:
    views = [a_node(name, *webs(count), zone=zone) for name, (zone, count) in nodes.items()]
    assert spread_evenly(selected(), views, views) == expected
    only = {**dict.fromkeys(DEFAULT_WEIGHTS, 0), "PodTopologySpread": DEFAULT_WEIGHTS["PodTopologySpread"]}
    assert scores(selected(), views, views, {}, only) == [2 * score for score in expected]


@pytest.mark.parametrize(
    ("skew", "expected"),
    [
        (1, [0, 25, 100]),  # ln 4 for a pod of the zone: costs 4 and 1
        (5, [0, 62, 100]),  # 4 more on each: the difference counts less
    ],
)
def test_constraints_of_a_profile_score_no_node_that_lacks_a_label(skew: int, expected: list[int]) -> None:
    views = [a_node("a"), a_node("b", *webs(3), zone="x"), a_node("c", *webs(1), zone="y")]
    assert spread_evenly(selected(listed((ZONE, skew, "ScheduleAnyway"))), views, views) == expected
    assert spread_evenly(selected(listed((ZONE, skew, "ScheduleAnyway"))), views[:1], views) == [0]


def test_who_counts() -> None:
    """Pods of the namespace that are selected and not on their way out; also on nodes that the pod does not fit."""
    leaving = a_pod("l", labels=WEB, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    others = [leaving, a_pod("n", labels=WEB, namespace="other"), a_pod("d", labels={"app": "db"})]
    views = [a_node("a", *others, zone="x"), a_node("b", *webs(1), zone="y"), a_node("c", *webs(2), zone="x")]
    by_zone = listed((ZONE, 1, "ScheduleAnyway"))
    assert spread_evenly(selected(by_zone), views[:2], views) == [33, 100]  # costs 3 and 1
    apart = selected(by_zone, nodeSelector={HOSTNAME: "a"})
    assert spread_evenly(apart, views[:1], views) == [100]


def test_pods_on_a_host_are_those_of_the_node_itself() -> None:
    """As upstream, also where two nodes have the same label."""
    views = [a_node("a", *webs(2), labels={HOSTNAME: "same"}), a_node("b", labels={HOSTNAME: "same"})]
    by_host = listed((HOSTNAME, 1, "ScheduleAnyway"))
    assert spread_evenly(selected(by_host), views, views) == [0, 100]


def test_an_empty_selector_counts_nobody() -> None:
    """Upstream's quirk: it selects every pod, and none is counted."""
    own = spreading("web", key=HOSTNAME, whenUnsatisfiable="ScheduleAnyway", labelSelector={})
    views = [a_node("a", *webs(3)), a_node("b")]
    assert spread_evenly(a_pod(labels=WEB, topologySpreadConstraints=own), views, views) == [100, 100]
    hard = spreading("web", key=HOSTNAME, labelSelector={})
    assert isinstance(place(a_pod(labels=WEB, topologySpreadConstraints=hard), views[:1]), Placed)


@pytest.mark.parametrize("action", ["ScheduleAnyway", "DoNotSchedule"])
def test_a_pod_that_names_a_constraint_has_no_defaults(action: str) -> None:
    own = a_pod(labels=WEB, topologySpreadConstraints=spreading("web", whenUnsatisfiable=action)).pod
    assert default_spread(own, SYSTEM_DEFAULTING, [WEB], ()) is None


def test_defaults_that_forbid() -> None:
    """A profile's own may: they filter, and a pod that leaves wakes who waits."""
    pod = selected(listed((ZONE, 1, "DoNotSchedule")), cpu="1")
    views: list[NodeInfo] = [a_node("a", *webs(1), zone="x"), a_node("b", zone="y", cpu="0")]
    verdict = place(pod, views)
    assert isinstance(verdict, Unschedulable)
    assert verdict.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints."
    )
    gone = PodGone(webs(1)[0].pod)
    assert worth_retrying(Waiting(pod, verdict), gone)
    assert place(pod, [a_node("a", zone="x"), views[1]]) == Placed("a")


CONTROLLED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({}, ("apps", "ReplicaSet", "default", "web", "u")),
        ({"kind": "StatefulSet"}, ("apps", "StatefulSet", "default", "web", "u")),
        ({"apiVersion": "v1", "kind": "ReplicationController"}, ("", "ReplicationController", "default", "web", "u")),
        ({"controller": False}, None),
        ({"kind": "DaemonSet"}, None),
        ({"apiVersion": "batch/v1", "kind": "Job"}, None),
        ({"apiVersion": "example.com/v1"}, None),
    ],
)
def test_whose_selector_counts(owner: dict[str, Any], expected: tuple[str, ...] | None) -> None:
    assert owner_of(a_pod(meta={"ownerReferences": [{**CONTROLLED, **owner}]}).pod) == expected


def test_the_selector_of_services_and_owner() -> None:
    hashed = Requirement("pod-template-hash", "In", ("h",))
    app, tier = (Requirement(key, "In", (value,)) for key, value in (("app", "web"), ("tier", "front")))
    assert default_selector([], ()) == ()
    assert default_selector([WEB], ()) == (app,)
    assert default_selector([{"tier": "front"}, WEB], ()) == default_selector([{**WEB, "tier": "front"}], ())
    assert default_selector([{"tier": "front"}], (hashed, app)) == (app, hashed, tier)
    assert default_spread(a_pod().pod, SYSTEM_DEFAULTING, [], ()) is None
    assert default_spread(a_pod().pod, listed(), [WEB], ()) is None
