"""resolv.conf of pods, by dnsPolicy and dnsConfig."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.pod.resolver import ClusterNames, Formed, Resolver, Warned, parse, pod_resolver

RESOLV = "# made\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nsearch a.example\n"
RESOLV += "search b.example. c.example .\noptions ndots:1 edns0 edns0\n"
NODE = Resolver(("10.0.0.2", "10.0.0.3"), ("b.example", "c.example", "."), ("ndots:1", "edns0"))
NAMES = ClusterNames(("10.96.0.10",))
CLUSTER = ("shop.svc.cluster.local", "svc.cluster.local", "cluster.local")
OURS = Resolver(("10.96.0.10",), (*CLUSTER, *NODE.searches), ("ndots:5",))
CONFIG = {
    "nameservers": ["10.0.0.3", "1.1.1.1"],
    "searches": ["own.example", "b.example"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "debug"}],
}
FALLS_BACK = (
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. '
    'Falling back to "Default" policy.'
)


def pod(**spec: Any) -> Pod:
    metadata = {"name": "web-0", "namespace": "shop", "uid": "u-1"}
    return convert({"metadata": metadata, "spec": {"containers": [], **spec}}, Pod)


def formed(names: ClusterNames = NAMES, node: Resolver = NODE, *, shared: bool = False, **spec: Any) -> Formed:
    return pod_resolver(pod(**spec), node, names, shared=shared)


def test_what_a_file_says() -> None:
    assert parse(RESOLV) == NODE


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"dnsPolicy": "ClusterFirst"}, OURS),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, None),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, OURS),
        ({"dnsPolicy": "ClusterFirstWithHostNet"}, OURS),
        ({"dnsPolicy": "Default"}, None),
        ({"dnsPolicy": "Default", "hostNetwork": True}, None),
        (
            {"dnsPolicy": "None", "dnsConfig": CONFIG},
            Resolver(("10.0.0.3", "1.1.1.1"), ("own.example", "b.example"), ("ndots:2", "debug")),
        ),
        (
            {"dnsPolicy": "Default", "dnsConfig": CONFIG},
            Resolver(
                ("10.0.0.2", "10.0.0.3", "1.1.1.1"), (*NODE.searches, "own.example"), ("ndots:2", "edns0", "debug")
            ),
        ),
        (
            {"dnsPolicy": "ClusterFirst", "dnsConfig": CONFIG},
            Resolver(
                ("10.96.0.10", "10.0.0.3", "1.1.1.1"), (*CLUSTER, *NODE.searches, "own.example"), ("ndots:2", "debug")
            ),
        ),
    ],
)
def test_each_policy(spec: dict[str, Any], wanted: Resolver | None) -> None:
    assert formed(**spec) == Formed(wanted)


def test_another_domain_and_none() -> None:
    found = formed(ClusterNames(("10.96.0.10",), "c.example"), Resolver(), dnsPolicy="ClusterFirst").resolver
    assert found == Resolver(("10.96.0.10",), ("shop.svc.c.example", "svc.c.example", "c.example"), ("ndots:5",))
    bare = formed(ClusterNames(("10.96.0.10",), ""), dnsPolicy="ClusterFirst").resolver
    assert bare == Resolver(("10.96.0.10",), NODE.searches, ("ndots:5",))


def test_without_the_clusters_servers_a_pod_has_the_nodes_and_it_is_said() -> None:
    said = Warned("MissingClusterDNS", f'pod: "web-0_shop(u-1)". {FALLS_BACK}', FALLS_BACK)
    for policy in ("ClusterFirst", "ClusterFirstWithHostNet"):
        assert formed(ClusterNames(), dnsPolicy=policy) == Formed(None, (said,))
    assert formed(ClusterNames(), dnsPolicy="Default") == Formed(None)
    assert formed(ClusterNames(), dnsPolicy="ClusterFirst", hostNetwork=True) == Formed(None)


def test_where_every_pod_is_on_the_nodes_network_nothing_is_said() -> None:
    assert formed(ClusterNames(), shared=True, dnsPolicy="ClusterFirst") == Formed(None)


def test_a_fourth_server_is_left_out_and_said() -> None:
    config = {"nameservers": ["10.0.0.4", "10.0.0.5", "10.0.0.6"]}
    assert formed(dnsPolicy="ClusterFirst", dnsConfig=config) == Formed(
        Resolver(("10.96.0.10", "10.0.0.4", "10.0.0.5"), OURS.searches, OURS.options),
        (
            Warned(
                "DNSConfigForming",
                "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
                "10.96.0.10 10.0.0.4 10.0.0.5",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("searches", "kept"),
    [
        ([f"s{number}.example" for number in range(40)], 32 - 6),
        (["x" * 254, "y.example"], 1),
        (["x" * 253, "y.example"], 2),
        ([f"{'x' * 240}.{number}" for number in range(20)], 8),
    ],
)
def test_searches_beyond_the_limits_are_left_out_and_said(searches: list[str], kept: int) -> None:
    found = formed(dnsPolicy="ClusterFirst", dnsConfig={"searches": searches})
    assert found.resolver is not None
    assert len(found.resolver.searches) == 6 + kept
    assert len(" ".join(found.resolver.searches)) <= 2048
    line = " ".join(found.resolver.searches)
    wanted = (
        "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + line
    )
    assert [warning.message for warning in found.warnings] == ([] if kept == len(searches) else [wanted])


def test_what_the_node_has_too_much_of_is_said_as_well() -> None:
    node = Resolver(("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"))
    found = formed(node=node, dnsPolicy="Default")
    assert found.resolver == Resolver(("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    assert [warning.reason for warning in found.warnings] == ["DNSConfigForming"]
