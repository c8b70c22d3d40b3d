"""Services as text for nft: golden texts, and differences that end where the whole table does."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.services.backends import Backend, PortBackends, ProxyPlace, Reached, ServiceBackends
from podfit.decide.services.rules import Parts, host_port_rules, service_rules
from podfit.decide.services.ruleset import Frame, difference, merged, whole

GOLDEN = Path(__file__).parent / "golden"
PLACE = ProxyPlace("n1", "192.0.2.2", "10.244.0.0/16", "10.244.0.0/29")
FRAME = Frame("podfit-1a-services", "services of podfit on /data", PLACE)


def reached(*backends: str, dropped: bool = False) -> Reached:
    return Reached(tuple(Backend(address, 8080) for address in backends), dropped)


def service(
    name: str,
    address: str,
    *backends: str,
    protocol: str = "tcp",
    node_port: int = 0,
    affinity: int = 0,
    masquerade: bool = True,
    dropped: bool = False,
) -> ServiceBackends:
    way = reached(*backends, dropped=dropped)
    port = PortBackends("http", protocol, 80, node_port, way, way, masquerade, affinity)
    return ServiceBackends(f"shop/{name}", address, (port,))


def pod(name: str, address: str, *ports: dict[str, Any], **spec: Any) -> Pod:
    whole = {"containers": [{"name": "c", "ports": list(ports)}], **spec}
    meta = {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {"podIP": address, "hostIP": "192.0.2.2", "phase": "Running"}
    return convert({"metadata": meta, "spec": whole, "status": status}, Pod)


CASES = {
    "empty": [],
    "one": [service("web", "10.96.0.5", "10.244.0.2")],
    "several": [service("web", "10.96.0.5", "10.244.0.2", "10.244.0.3", "10.244.0.4")],
    "nobody": [service("web", "10.96.0.5")],
    "elsewhere": [service("web", "10.96.0.5", dropped=True)],
    "node-port": [service("web", "10.96.0.5", "10.244.0.2", "10.244.0.3", node_port=30080)],
    "node-port-local": [service("web", "10.96.0.5", "10.244.0.2", node_port=30080, masquerade=False)],
    "affinity": [service("web", "10.96.0.5", "10.244.0.2", "10.244.0.3", affinity=10800)],
    "udp": [service("dns", "10.96.0.10", "10.244.0.2", protocol="udp")],
}


@pytest.mark.parametrize("case", CASES)
def test_the_table_is_as_it_was_recorded(case: str) -> None:
    text = whole(FRAME, [service_rules(one) for one in CASES[case]])
    assert text == (GOLDEN / f"{case}.nft").read_text()


def test_node_ports_answer_others_at_addresses_that_were_named() -> None:
    named = Frame("t", "", PLACE, ("192.0.2.0/24", "198.51.100.7/32"))
    assert "ip daddr { 192.0.2.0/24, 198.51.100.7/32 } fib daddr type local jump node-port-services" in whole(named, ())
    assert "192.0.2.0/24" not in whole(FRAME, ())


def test_ports_of_the_node_lead_to_the_pod_that_has_them() -> None:
    web = {"containerPort": 80, "hostPort": 8080}
    pods = [
        pod("b", "10.244.0.3", web),  # the other one was first
        pod("a", "10.244.0.2", web, {"containerPort": 53, "hostPort": 53, "hostIP": "127.0.0.1", "protocol": "UDP"}),
        pod("host", "192.0.2.2", {"containerPort": 81, "hostPort": 81}, hostNetwork=True),
        pod("none", "10.244.0.4", {"containerPort": 82}),
        pod("new", "", {"containerPort": 83, "hostPort": 83}),
    ]
    assert host_port_rules(pods).elements == {
        ("host-ports", "tcp . 8080"): "10.244.0.2 . 80",
        ("host-ip-ports", "udp . 127.0.0.1 . 53"): "10.244.0.2 . 53",
    }


def test_one_endpoint_more_is_one_rule_of_one_chain() -> None:
    before = service_rules(service("web", "10.96.0.5", "10.244.0.2"))
    after = service_rules(service("web", "10.96.0.5", "10.244.0.2", "10.244.0.3"))
    [chain] = before.chains
    assert difference("t", before, after).splitlines() == [
        f"flush chain ip t {chain}",
        (
            f"add rule ip t {chain} meta l4proto tcp dnat ip to numgen random mod 2 map "
            "{ 0 : 10.244.0.2 . 8080, 1 : 10.244.0.3 . 8080 }"
        ),
    ]
    assert difference("t", after, after) == ""


def test_what_is_referred_to_goes_last() -> None:
    before = service_rules(service("web", "10.96.0.5", "10.244.0.2", affinity=5))
    lines = difference("t", before, Parts()).splitlines()
    verbs = [" ".join(line.split()[:2]) for line in lines]
    assert verbs == sorted(verbs, key=["delete element", "flush chain", "delete chain", "delete set"].index)


def test_long_lists_are_several_lines() -> None:
    many = [service(f"s{number}", f"10.96.{number // 250}.{number % 250}", "10.244.0.2") for number in range(1000)]
    text = whole(FRAME, map(service_rules, many))
    assert max(map(len, text.splitlines())) < 20_000
    assert text.count("add element ip podfit-1a-services service-ips") == 5


SERVICES = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.builds(
        lambda backends, affinity, node_port, protocol: (tuple(backends), affinity, node_port, protocol),
        st.sets(st.sampled_from(["10.244.0.2", "10.244.0.3", "10.244.0.4"])),
        st.sampled_from([0, 5]),
        st.sampled_from([0, 30080]),
        st.sampled_from(["tcp", "udp"]),
    ),
)


def parts(given: dict[str, Any]) -> Parts:
    found = []
    for number, (name, (backends, affinity, node_port, protocol)) in enumerate(sorted(given.items())):
        port = node_port and node_port + number
        address = f"10.96.0.{ord(name)}"
        made = service(name, address, *backends, affinity=affinity, node_port=port, protocol=protocol)
        found.append(service_rules(made))
    return merged(found)


@given(SERVICES, SERVICES)
def test_a_difference_ends_where_the_whole_does(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Played on a model of the kernel, that refuses what the kernel would."""
    model = Model(parts(before))
    model.play(difference("t", parts(before), parts(after)))
    assert model == Model(parts(after))


class Model:
    def __init__(self, given: Parts) -> None:
        self.sets = set(given.sets)
        self.chains = {name: list(chain.rules) for name, chain in given.chains.items()}
        self.elements = dict(given.elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def play(self, text: str) -> None:
        for line in text.splitlines():
            verb, what, _, _, name, *rest = line.split(" ", 5)
            getattr(self, f"{verb}_{what}")(name, *rest)

    def add_set(self, name: str, _: str) -> None:
        assert name not in self.sets
        self.sets.add(name)

    def delete_set(self, name: str) -> None:
        assert not any(f"@{name} " in rule for rules in self.chains.values() for rule in rules)
        self.sets.remove(name)

    def add_chain(self, name: str, _: str = "") -> None:
        assert name not in self.chains
        self.chains[name] = []

    def flush_chain(self, name: str) -> None:
        self.chains[name].clear()

    def delete_chain(self, name: str) -> None:
        assert not self.chains[name]
        assert f"goto {name}" not in self.elements.values()
        assert not any(f"goto {name}" in rule for rules in self.chains.values() for rule in rules)
        del self.chains[name]

    def add_rule(self, name: str, rule: str) -> None:
        for word in rule.replace(",", " ").split():
            assert not word.startswith("@") or word[1:] in self.sets
        self.chains[name].append(rule)

    def add_element(self, name: str, texts: str) -> None:
        for text in texts.strip("{} ").split(", "):
            key, _, value = text.partition(" : ")
            assert (name, key) not in self.elements
            assert not value or value.removeprefix("goto ") in self.chains
            self.elements[name, key] = value

    def delete_element(self, name: str, texts: str) -> None:
        for key in texts.strip("{} ").split(", "):
            del self.elements[name, key]


def many(number: int, *, affinity: int = 0) -> Parts:
    addresses = (f"10.244.{index // 250}.{index % 250 + 1}" for index in range(number))
    return service_rules(service("web", "10.96.0.5", *addresses, affinity=affinity))


@pytest.mark.parametrize(
    ("number", "size"), [(1, 8192), (16, 8192), (17, 7710), (1000, 131), (1001, 130), (10_000, 64)]
)
def test_the_more_backends_the_fewer_clients_are_remembered_with_each(number: int, size: int) -> None:
    parts = many(number, affinity=60)
    assert {kind.partition(";")[2].split(";")[0] for kind in parts.sets.values()} == {f" size {size}"}
    assert len(parts.sets) == min(number, 1000)
    assert len(parts.chains) == min(number, 1000) + 1
