"""Affinity between pods and topology spread, the hard kinds."""

from typing import Any

import pytest

from podfit.decide.placement.place import Placed, Unschedulable, place
from podfit.decide.placement.view import NodeInfo, Resident
from support.placing import HOSTNAME, ZONE, a_node, a_pod, affinity, spreading

WEB = {"app": "web"}


def outcome(pod: Resident, *views: NodeInfo, **namespaces: dict[str, str]) -> str:
    """The node, or the reasons."""
    verdict = place(pod, views, namespaces=namespaces)
    if isinstance(verdict, Placed):
        return verdict.node
    assert isinstance(verdict, Unschedulable)
    return verdict.message.removeprefix(f"0/{len(views)} nodes are available: ").removesuffix(".")


def near(app: str, key: str = HOSTNAME, **given: Any) -> Resident:
    return a_pod(affinity=affinity("podAffinity", app, key, **given), labels=given.pop("labels", None))


def test_affinity_goes_where_its_friends_are() -> None:
    friend = a_pod("q", labels=WEB)
    assert outcome(near("web"), a_node("a"), a_node("b", friend)) == "b"
    assert outcome(near("web", ZONE), a_node("a", zone="x"), a_node("b", friend, a_pod("r", cpu="3"), zone="x")) == "a"
    assert outcome(near("web"), a_node("a")) == "1 node(s) didn't match pod affinity rules"
    assert outcome(near("web", ZONE), a_node("b", friend)) == "1 node(s) didn't match pod affinity rules"


def test_the_first_of_a_group_that_is_its_own_friend_may_begin_it() -> None:
    pod = a_pod(labels=WEB, affinity=affinity("podAffinity", "web"))
    assert outcome(pod, a_node("a"), a_node("b")) == "a"
    assert outcome(pod, a_node("a"), a_node("b", a_pod("q", labels=WEB))) == "b"
    unlabelled = a_pod(labels=WEB, affinity=affinity("podAffinity", "web", "no/such"))
    assert outcome(unlabelled, a_node("a")) == "1 node(s) didn't match pod affinity rules"


def test_friends_of_another_namespace_count_only_when_it_is_named_or_selected() -> None:
    view = a_node("a", a_pod("q", labels=WEB, namespace="other"))
    none = "1 node(s) didn't match pod affinity rules"
    assert outcome(near("web"), view) == none
    assert outcome(near("web", namespaces=["other"]), view) == "a"
    assert outcome(near("web", namespaceSelector={}), view) == "a"
    team = {"matchLabels": {"team": "x"}}
    assert outcome(near("web", namespaceSelector=team), view, other={"team": "x"}) == "a"
    assert outcome(near("web", namespaceSelector=team), view, other={"team": "y"}) == none


def test_anti_affinity_keeps_away_and_is_held_against_newcomers_too() -> None:
    repelling = affinity("podAntiAffinity", "web")
    assert outcome(a_pod(affinity=repelling), a_node("a", a_pod("q", labels=WEB)), a_node("b")) == "b"
    assert outcome(a_pod(affinity=repelling), a_node("a", a_pod("q", labels=WEB))) == (
        "1 node(s) didn't match pod anti-affinity rules"
    )
    hermit = a_pod("q", affinity=repelling)
    kept_out = "1 node(s) didn't satisfy existing pods anti-affinity rules"
    assert outcome(a_pod(labels=WEB), a_node("a", hermit)) == kept_out
    assert outcome(a_pod(), a_node("a", hermit)) == "a"


def test_anti_affinity_of_a_zone_closes_all_of_it() -> None:
    hermit = a_pod("q", affinity=affinity("podAntiAffinity", "web", ZONE))
    views = [a_node("a", hermit, zone="x"), a_node("b", zone="x"), a_node("c", zone="y")]
    assert outcome(a_pod(labels=WEB), *views) == "c"
    assert outcome(a_pod(labels=WEB), *views[:2]) == "2 node(s) didn't satisfy existing pods anti-affinity rules"


def test_match_label_keys_narrow_a_term_to_the_pods_own_version() -> None:
    pod = a_pod(labels={"v": "2"}, affinity=affinity("podAntiAffinity", "web", matchLabelKeys=["v"]))
    assert outcome(pod, a_node("a", a_pod("q", labels={"app": "web", "v": "1"}))) == "a"
    assert "anti-affinity" in outcome(pod, a_node("a", a_pod("q", labels={"app": "web", "v": "2"})))


SKEWED = "node(s) didn't match pod topology spread constraints"


def spread(**given: Any) -> Resident:
    return a_pod(labels=WEB, topologySpreadConstraints=spreading("web", **given))


def zones(x: int, y: int) -> list[NodeInfo]:
    def several(prefix: str, count: int) -> list[Resident]:
        return [a_pod(f"{prefix}{index}", labels=WEB, cpu="10m") for index in range(count)]

    return [a_node("a", *several("x", x), zone="x"), a_node("b", *several("y", y), a_pod("z", cpu="3"), zone="y")]


@pytest.mark.parametrize(
    ("x", "y", "skew", "expected"), [(0, 0, 1, "a"), (1, 0, 1, "b"), (1, 0, 2, "a"), (2, 1, 1, "b"), (3, 0, 1, "b")]
)
def test_the_domains_stay_within_the_skew(x: int, y: int, skew: int, expected: str) -> None:
    assert outcome(spread(skew=skew), *zones(x, y)) == expected


def test_what_cannot_be_spread_says_so() -> None:
    views = zones(1, 0)
    full = views[1].with_residents((a_pod("z", cpu="4"),))
    pod = a_pod(labels=WEB, cpu="1", topologySpreadConstraints=spreading("web"))
    assert outcome(pod, views[0], full) == f"1 Insufficient cpu, 1 {SKEWED}"
    assert outcome(pod, a_node("c")) == f"1 {SKEWED} (missing required label)"


def test_fewer_domains_than_asked_for_count_as_empty_ones() -> None:
    assert outcome(spread(minDomains=2), a_node("a", zone="x")) == "a"
    assert outcome(spread(minDomains=2), a_node("a", a_pod("q", labels=WEB), zone="x")) == f"1 {SKEWED}"


def test_pods_of_other_namespaces_and_on_their_way_out_do_not_count() -> None:
    leaving = a_pod("q", labels=WEB, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    stranger = a_pod("r", labels=WEB, namespace="other")
    views = [a_node("a", leaving, stranger, zone="x"), a_node("b", a_pod("z", cpu="3"), zone="y")]
    assert outcome(spread(), *views) == "a"


def test_nodes_where_the_pod_may_not_go_make_no_domain_unless_it_says_so() -> None:
    views = [a_node("a", a_pod("q", labels=WEB), zone="x", labels={"pool": "p"}), a_node("b", zone="y")]
    fixed: dict[str, Any] = {"nodeSelector": {"pool": "p"}, "labels": WEB}
    assert outcome(a_pod(topologySpreadConstraints=spreading("web"), **fixed), *views) == "a"
    ignoring = spreading("web", nodeAffinityPolicy="Ignore")
    assert SKEWED in outcome(a_pod(topologySpreadConstraints=ignoring, **fixed), *views)
    taint = [{"key": "k", "effect": "NoSchedule"}]
    tainted = [a_node("a", a_pod("q", labels=WEB), zone="x"), a_node("b", zone="y", taints=taint)]
    assert SKEWED in outcome(spread(), *tainted)
    assert outcome(spread(nodeTaintsPolicy="Honor"), *tainted) == "a"
