"""Ranges of addresses for pods, and what the plugins and nft are told of them."""

from ipaddress import IPv4Network

import pytest

from podfit.decide.node.pod_network import RANGES, PluginsPlace, conflist, free_range, gateway, guard, meets, range_of

PLACE = PluginsPlace("podfit-1a2b", "/data/containerd/addresses", 1400)

GUARD = """\
table ip podfit-1a2b
delete table ip podfit-1a2b
table ip podfit-1a2b {
  comment "pods of podfit on /data"
  chain from-pods {
    type filter hook prerouting priority raw; policy accept;
    ip saddr 10.244.0.1 iif != "lo" drop
    ip saddr 10.244.0.0/24 fib saddr . iif oif 0 drop
    ip saddr 10.244.0.0/24 ip daddr 127.0.0.0/8 drop
  }
  chain to-node {
    type filter hook input priority filter; policy accept;
    ip daddr 10.244.0.1 tcp dport 6443 iif != "lo" ip saddr != 10.244.0.0/24 drop
  }
  chain to-pods {
    type filter hook forward priority filter; policy accept;
    ip daddr 10.244.0.0/24 ip saddr != 10.244.0.0/24 ct state new ct status & dnat != dnat drop
  }
  chain outward {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 10.244.0.0/24 ip daddr != 10.244.0.0/24 oif != "lo" masquerade
  }
}
"""


def test_the_usual_range_unless_something_of_the_machine_is_there() -> None:
    assert free_range([]) == "10.244.0.0/16"
    assert free_range(["10.244.3.0/24", "192.0.2.0/24"]) == "10.245.0.0/16"
    assert free_range(["10.192.0.0/10"]) == "10.128.0.0/16"
    assert free_range(["10.0.0.0/8"]) == ""


def test_no_range_meets_another_or_the_addresses_of_services() -> None:
    assert not any(one.overlaps(other) for one in RANGES for other in RANGES if one is not other)
    assert not any(one.overlaps(IPv4Network("10.96.0.0/12")) for one in RANGES)


def test_networks_that_meet() -> None:
    assert meets("10.244.0.0/24", ["10.245.0.0/16", "10.244.0.0/16"]) == "10.244.0.0/16"
    assert meets("10.244.0.0/24", ["10.244.1.0/24"]) == ""


def test_the_plugins_are_told_the_range_and_it_is_found_again() -> None:
    told = conflist("10.244.7.0/24", PLACE)
    assert told == {
        "cniVersion": "1.0.0",
        "name": "podfit-1a2b",
        "plugins": [
            {
                "type": "ptp",
                "mtu": 1400,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/data/containerd/addresses",
                    "ranges": [[{"subnet": "10.244.7.0/24"}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }
    assert range_of(told) == "10.244.7.0/24"


@pytest.mark.parametrize("other", [None, [], {}, {"plugins": []}, {"plugins": [{"type": "bridge", "ipam": {}}]}])
def test_a_configuration_of_somebody_else_has_no_range(other: object) -> None:
    assert range_of(other) == ""


def test_the_guards_rules() -> None:
    assert gateway("10.244.0.0/24") == "10.244.0.1"
    assert guard("podfit-1a2b", "10.244.0.0/24", api_port=6443, comment="pods of podfit on /data") == GUARD
    assert "dport" not in guard("podfit-1a2b", "10.244.0.0/24", api_port=0, comment="")
