"""The table of a node's proxy: its frame, all of it at once, and what is sent when parts have changed.

What a connection meets, the first packet of it:

    from a pod         services > ports of the node that pods have > NodePorts at any address of the node
    from this machine  the same, NodePorts at its own addresses
    from elsewhere     ports of the node that pods have; NodePorts at those addresses that were named

What is still meant for a Service's address after that has nobody who answers: it is refused.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

import msgspec

from podfit.decide.services.backends import ProxyPlace
from podfit.decide.services.rules import (
    CLUSTER_IPS,
    HOST_IP_PORTS,
    HOST_PORTS,
    MASQUERADE,
    NODE_PORTS,
    SERVICE_IPS,
    Chain,
    Parts,
)

MOST_HAIRPINS = 4096
"""Addresses of this node's own pods; a range with more has Services that do not lead a pod back to itself beyond it."""
AT_ONCE = 200
"""Elements of a line of text."""


class Frame(msgspec.Struct, frozen=True):
    """What does not change: the table's name and comment, where it is, and from where NodePorts answer."""

    table: str
    comment: str
    place: ProxyPlace
    node_port_addresses: tuple[str, ...] = ()


def whole(frame: Frame, parts: Iterable[Parts]) -> str:
    """The text that replaces the table of that name and touches no other."""
    lines = (f"table ip {frame.table}", f"delete table ip {frame.table}", *_frame(frame))
    return _text((*lines, *_changes(frame.table, Parts(), merged(parts))))


def difference(table: str, before: Parts, after: Parts) -> str:
    """The text that makes of the one the other; empty when they are the same."""
    return _text(_changes(table, before, after))


def merged(parts: Iterable[Parts]) -> Parts:
    """The parts of several owners; what two of them have is the later one's."""
    chains, sets, elements = dict[str, Chain](), dict[str, str](), dict[tuple[str, str], str]()
    for part in parts:
        chains |= part.chains
        sets |= part.sets
        elements |= part.elements
    return Parts(chains, sets, elements)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _changes(table: str, before: Parts, after: Parts) -> Iterator[str]:
    """What is referred to is there before, and goes after, what refers to it."""
    where = f"ip {table}"
    for name, kind in after.sets.items():
        if name not in before.sets:
            yield f"add set {where} {name} {{ {kind} }}"
    changed = [name for name, chain in after.chains.items() if before.chains.get(name) != chain]
    for name in changed:
        if name not in before.chains:
            comment = after.chains[name].comment
            yield f"add chain {where} {name}" + (f' {{ comment "{comment}"; }}' if comment else "")
        else:
            yield f"flush chain {where} {name}"
    for name in changed:
        yield from (f"add rule {where} {name} {rule}" for rule in after.chains[name].rules)
    gone = [key for key, value in before.elements.items() if after.elements.get(key) != value]
    come = {key: value for key, value in after.elements.items() if before.elements.get(key) != value}
    yield from _elements("delete", where, [(name, key) for name, key in gone])
    yield from _elements("add", where, [(name, f"{key} : {to}" if to else key) for (name, key), to in come.items()])
    removed = [name for name in before.chains if name not in after.chains]
    yield from (f"flush chain {where} {name}" for name in removed)
    yield from (f"delete chain {where} {name}" for name in removed)
    yield from (f"delete set {where} {name}" for name in before.sets if name not in after.sets)


def _elements(verb: str, where: str, given: list[tuple[str, str]]) -> Iterator[str]:
    by_set = dict[str, list[str]]()
    for name, text in given:
        by_set.setdefault(name, []).append(text)
    for name, texts in by_set.items():
        for first in range(0, len(texts), AT_ONCE):
            yield f"{verb} element {where} {name} {{ {', '.join(texts[first : first + AT_ONCE])} }}"


def _frame(frame: Frame) -> Iterator[str]:
    place = frame.place
    host_ports = f"fib daddr type local dnat ip to meta l4proto . th dport map @{HOST_PORTS}"
    host_ip_ports = f"dnat ip to meta l4proto . ip daddr . th dport map @{HOST_IP_PORTS}"
    named = ", ".join(frame.node_port_addresses)
    pods = f"ip saddr {place.cluster} " if place.cluster else ""
    own = _own_addresses(place)
    yield from (
        f"table ip {frame.table} {{",
        f'  comment "{frame.comment}"',
        f"  map {SERVICE_IPS} {{ type inet_proto . ipv4_addr . inet_service : verdict; }}",
        f"  map {NODE_PORTS} {{ type inet_proto . inet_service : verdict; }}",
        f"  map {HOST_PORTS} {{ type inet_proto . inet_service : ipv4_addr . inet_service; }}",
        f"  map {HOST_IP_PORTS} {{ type inet_proto . ipv4_addr . inet_service : ipv4_addr . inet_service; }}",
        f"  set {CLUSTER_IPS} {{ type ipv4_addr; }}",
        f"  set hairpin {{ type ipv4_addr . ipv4_addr; {own}}}",
        "  chain services {",
        f"    meta l4proto . ip daddr . th dport vmap @{SERVICE_IPS}",
        "  }",
        "  chain node-port-services {",
        f"    meta l4proto . th dport vmap @{NODE_PORTS}",
        "  }",
        "  chain prerouting {",
        "    type nat hook prerouting priority dstnat; policy accept;",
        f"    {pods}jump services",
        f"    {host_ports}",
        f"    {host_ip_ports}",
        f"    {pods}fib daddr type local jump node-port-services",
        *([f"    ip daddr {{ {named} }} fib daddr type local jump node-port-services"] if named else []),
        "  }",
        "  chain output {",
        "    type nat hook output priority -100; policy accept;",
        "    jump services",
        f"    {host_ports}",
        f"    {host_ip_ports}",
        "    fib daddr type local jump node-port-services",
        "  }",
        "  chain postrouting {",
        "    type nat hook postrouting priority srcnat; policy accept;",
        '    oif "lo" return',
        "    ct status & dnat != dnat return",
        "    ip saddr . ip daddr @hairpin masquerade",
        "    ip saddr 127.0.0.0/8 masquerade",
        *([f"    ip saddr != {place.cluster} ct original ip daddr @{CLUSTER_IPS} masquerade"] if place.cluster else []),
        f"    meta mark & {MASQUERADE} == {MASQUERADE} meta mark set meta mark ^ {MASQUERADE} masquerade",
        "  }",
        "  chain refuse-forward {",
        "    type filter hook forward priority filter; policy accept;",
        f"    {pods}ip daddr @{CLUSTER_IPS} reject",
        "  }",
        "  chain refuse-output {",
        "    type filter hook output priority filter; policy accept;",
        f"    ip daddr @{CLUSTER_IPS} reject",
        "  }",
        "}",
    )


def _own_addresses(place: ProxyPlace) -> str:
    """Pods that a Service may lead back to themselves: then the answer has to come over this machine, too."""
    if not place.pods:
        return ""
    network = IPv4Network(place.pods)
    addresses = [str(network[number]) for number in range(2, min(network.num_addresses - 1, MOST_HAIRPINS))]
    return f"elements = {{ {', '.join(f'{own} . {own}' for own in addresses)} }}; "
