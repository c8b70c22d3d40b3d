"""The addresses of a node's pods: the range that they come from, how the plugins are told, what guards them.

    cluster range    10.244.0.0/16, or the first of `RANGES` that nothing else on this machine uses
    node's range     one /24 of it for each node (`decide.workload.nodes.ipam`); its first address is the gateway
    a pod            an address of the node's range, on a veth whose other end has the gateway's address

The plugins ptp, host-local and loopback of the distribution do the work. They route each pod by itself, so there is no
bridge, and what other programs say of bridges does not matter.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from typing import Any

import msgspec

CNI_VERSION = "1.0.0"
RANGES = tuple(IPv4Network(f"10.{second}.0.0/16") for second in (*range(244, 256), *range(128, 244)))
"""Where a cluster's pods may be, the usual one first."""
FORWARDING = "net/ipv4/ip_forward"
"""The kernel's switch that lets pods reach each other and what is beyond this machine."""
OF_AN_INTERFACE: Mapping[str, str] = {
    "net/ipv4/conf/{}/rp_filter": "1",
    "net/ipv4/conf/{}/route_localnet": "1",
    "net/ipv6/conf/{}/disable_ipv6": "1",
}
"""Of the node's end of each pod's veth: a pod sends with its own address only; an answer to a connection from the
node's loopback finds its way back (`guard` drops everything else that is meant for loopback); there is no link-local
address by which a pod could reach what listens on all of IPv6."""


def free_range(taken: Iterable[str]) -> str:
    """The first of `RANGES` that meets none of the networks `taken`; empty when there is none."""
    used = [IPv4Network(network) for network in taken]
    return next((str(candidate) for candidate in RANGES if not any(candidate.overlaps(one) for one in used)), "")


def meets(network: str, others: Iterable[str]) -> str:
    """The first of the others that has an address of the network; empty without one."""
    own = IPv4Network(network)
    return next((other for other in others if own.overlaps(IPv4Network(other))), "")


def gateway(network: str) -> str:
    """The address of this machine as the pods of the network see it: the network's first."""
    return str(IPv4Network(network)[1])


class PluginsPlace(msgspec.Struct, frozen=True):
    """What the plugins are told beside the range: the network's `name`, which no other on the machine has, the
    directory where host-local keeps a file for each address that is taken, and the size of packets.
    """

    name: str
    addresses: str
    mtu: int


def conflist(network: str, place: PluginsPlace) -> dict[str, Any]:
    """The configuration of the plugins for pods of that network, as CNI 1.0 has it."""
    ipam = {
        "type": "host-local",
        "dataDir": place.addresses,
        "ranges": [[{"subnet": network}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugin = {"type": "ptp", "mtu": place.mtu, "ipam": ipam}
    return {"cniVersion": CNI_VERSION, "name": place.name, "plugins": [plugin]}


def range_of(configuration: Any) -> str:
    """The network of a configuration that `conflist` has made; empty for any other."""
    match configuration:
        case {"plugins": [{"ipam": {"ranges": [[{"subnet": str(network)}]]}}]}:
            return network
    return ""


def guard(table: str, network: str, *, api_port: int, comment: str) -> str:
    """The kubelet's own table for nft: it replaces the one of that name, and touches no other.

    - what has a pod's address has to come from that pod, and nobody's packet for loopback comes from a pod
    - from other machines nobody reaches a pod but by a Service that says so (its packets are translated: dnat)
    - the API server on the gateway's address, port `api_port`, is for pods alone; 0 where there is none
    - what pods send to other machines has this machine's address
    """
    local, own = IPv4Network(network), gateway(network)
    api = f'    ip daddr {own} tcp dport {api_port} iif != "lo" ip saddr != {local} drop\n' if api_port else ""
    return f"""table ip {table}
delete table ip {table}
table ip {table} {{
  comment "{comment}"
  chain from-pods {{
    type filter hook prerouting priority raw; policy accept;
    ip saddr {own} iif != "lo" drop
    ip saddr {local} fib saddr . iif oif 0 drop
    ip saddr {local} ip daddr 127.0.0.0/8 drop
  }}
  chain to-node {{
    type filter hook input priority filter; policy accept;
{api}  }}
  chain to-pods {{
    type filter hook forward priority filter; policy accept;
    ip daddr {local} ip saddr != {local} ct state new ct status & dnat != dnat drop
  }}
  chain outward {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {local} ip daddr != {local} oif != "lo" masquerade
  }}
}}
"""
