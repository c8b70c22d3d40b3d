"""For which names a node gets a serving certificate without a person, and whose an address is."""

from typing import Any

import pytest

from podfit.api.certificates.v1.types import CertificateSigningRequest, CertificateSigningRequestSpec
from podfit.api.core.v1.nodes.types import DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.certificates import NODE_SERVING, RequestedNames
from podfit.decide.node.addresses import OwnedAddress, is_reachable, taken
from podfit.decide.node.serving_certificates import serving_objection

USES = ("digital signature", "server auth")
ADDRESSES = (("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1"), ("Hostname", "n1"), ("InternalDNS", "N1.Lan"))


def node(name: str = "n1", *addresses: tuple[str, str], port: int = 10250) -> Node:
    return Node(
        metadata=ObjectMeta(name=name),
        status=NodeStatus(
            addresses=tuple(NodeAddress(type=kind, address=address) for kind, address in addresses or ADDRESSES),
            daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port)),
        ),
    )


def asked(**given: Any) -> RequestedNames:
    return RequestedNames(
        **{
            "common_name": "system:node:n1",
            "organizations": ("system:nodes",),
            "dns": ("n1",),
            "addresses": ("10.0.0.1",),
            **given,
        }
    )


def request(
    user: str = "system:node:n1", groups: tuple[str, ...] = ("system:nodes",), usages: tuple[str, ...] = USES
) -> CertificateSigningRequest:
    return CertificateSigningRequest(
        spec=CertificateSigningRequestSpec(signer_name=NODE_SERVING, username=user, groups=groups, usages=usages)
    )


@pytest.mark.parametrize(
    "wanted",
    [
        asked(),
        asked(dns=()),
        asked(addresses=()),
        asked(addresses=("10.0.0.1", "fd00::1")),
        asked(addresses=("fd00:0:0::1",)),
    ],
)
def test_a_node_gets_a_certificate_for_its_own_names(wanted: RequestedNames) -> None:
    assert serving_objection(request(), wanted, [node()], frozenset({"10.96.0.1"})) == ""


@pytest.mark.parametrize(
    ("wanted", "made", "why"),
    [
        (asked(), request(user="system:node:n2"), "the request was made by system:node:n2, not by system:node:n1"),
        (asked(), request(groups=("dev",)), "the request was made by system:node:n1, not by system:node:n1"),
        (asked(), request(usages=(*USES, "client auth")), "usages did not match"),
        (asked(organizations=()), request(), "subject organization is not system:nodes"),
        (asked(dns=(), addresses=()), request(), "DNS or IP subjectAltName is required"),
        (asked(uris=("spiffe://x",)), request(), "URI subjectAltNames are not allowed"),
        (asked(common_name="system:node:n3"), request(user="system:node:n3"), 'node "n3" is not registered'),
        (asked(addresses=("10.0.0.1", "10.0.0.2")), request(), '10.0.0.2 is no address of node "n1"'),
        (asked(addresses=("127.0.0.1",)), request(), "127.0.0.1 is reserved"),
        (asked(dns=("n1", "kubernetes")), request(), "kubernetes is reserved"),
        (asked(dns=("*.lan",)), request(), "*.lan is reserved"),
        (asked(dns=("n1.lan", "n1")), request(), 'n1.lan is no address of node "n1"'),
        (asked(dns=("n1.",)), request(), 'n1. is no address of node "n1"'),
        (asked(addresses=("::ffff:10.0.0.2",)), request(), '10.0.0.2 is no address of node "n1"'),
        (asked(unread="the subject has 2 common names"), request(), "the subject has 2 common names"),
        (asked(uses=("cert sign",)), request(), "asks for the usage cert sign, which spec.usages does not name"),
    ],
)
def test_what_waits_for_a_person(wanted: RequestedNames, made: CertificateSigningRequest, why: str) -> None:
    assert why in serving_objection(made, wanted, [node()], frozenset())


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "10.96.0.1"],
)
def test_addresses_that_no_node_speaks_for_even_if_its_node_tells_them(address: str) -> None:
    found = serving_objection(
        request(),
        asked(addresses=(address,)),
        [node("n1", ("InternalIP", address), ("Hostname", "n1"))],
        frozenset({"10.96.0.1"}),
    )
    assert found == f"{address} is reserved"


@pytest.mark.parametrize(
    "name",
    [
        "kubernetes",
        "KUBERNETES",
        "kubernetes.default",
        "kubernetes.default.svc",
        "web.default.svc",
        "localhost",
        "web.default.svc.cluster.local",
        "kubernetes.default.svc.",
        "a.localhost",
        "web.default.svc.example.com",
        "*.lan",
    ],
)
def test_names_of_the_api_server_and_of_services_are_no_nodes(name: str) -> None:
    found = serving_objection(request(), asked(dns=(name,)), [node("n1", ("Hostname", name), *ADDRESSES)], frozenset())
    assert found == f"{name} is reserved"


@pytest.mark.parametrize("name", ["api.example.com", "10.77.0.1", "API.example.com.", "::ffff:10.77.0.1"])
@pytest.mark.parametrize("port", [10250, 0])
def test_names_that_the_api_server_was_given_are_no_nodes(name: str, port: int) -> None:
    kind = "InternalIP" if name[0] in ":1" else "InternalDNS"
    wanted = asked(dns=(), addresses=(name,)) if kind == "InternalIP" else asked(dns=(name,))
    own = node("n1", (kind, name), *ADDRESSES, port=port)
    assert serving_objection(request(), wanted, [own], frozenset({"api.example.com", "10.77.0.1"})) == (
        f"{name} is reserved"
    )


@pytest.mark.parametrize("kind", ["Hostname", "InternalDNS", "ExternalDNS"])
def test_a_name_that_a_node_gives_itself_is_not_its_own(kind: str) -> None:
    own = node("n1", (kind, "www.bank.example"), *ADDRESSES)
    found = serving_objection(request(), asked(dns=("www.bank.example",)), [own], frozenset())
    assert found == 'www.bank.example is no address of node "n1"'


def test_the_address_of_a_node_in_the_api_servers_process_is_no_other_nodes() -> None:
    inside = node("inside", ("InternalIP", "10.0.0.1"), port=0)
    found = serving_objection(request(), asked(), [node(), inside], frozenset())
    assert found == '10.0.0.1 is an address of node "inside"'


def test_a_node_called_as_the_api_server_gets_none() -> None:
    name = "kubernetes.default.svc"
    wanted = asked(common_name=f"system:node:{name}", dns=(name,), addresses=())
    made = request(user=f"system:node:{name}")
    assert serving_objection(made, wanted, [node(name, ("Hostname", name))], frozenset()) == f"{name} is reserved"


def test_an_address_belongs_to_one_node_that_is_reached_there() -> None:
    other = node("n2", ("InternalIP", "FD00:0::1"))
    assert taken(node(), [node(), other]) == OwnedAddress("fd00::1", "n2")
    both = asked(addresses=("10.0.0.1", "fd00::1"))
    assert serving_objection(request(), both, [node(), other], frozenset()) == 'fd00::1 is an address of node "n2"'
    assert taken(node(), [node("n2", ("InternalIP", "fd00::1"), port=0)]) is None, "nothing listens there"
    assert taken(node(), [node("n2", ("InternalIP", "10.0.0.11"))]) is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.2", True),
        ("10.0.0.1", True),
        ("fd00::2", True),
        ("127.0.0.9", False),
        ("localhost", False),
        ("::ffff:127.0.0.1", False),
        ("169.254.1.1", False),
        ("0.0.0.0", False),
        ("ff02::1", False),
        ("", False),
    ],
)
def test_where_a_node_may_be_reached(address: str, expected: bool) -> None:
    assert is_reachable(address) is expected
