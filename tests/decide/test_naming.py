"""/etc/hosts and resolv.conf of pods, as files."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.pod.naming import Resolver, hosts_file, names_of, parse, resolver

NODE = "127.0.0.1 localhost\n10.0.0.9 box\n"
RESOLV = "# made\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nsearch a.example\n"
RESOLV += "search b.example c.example\noptions ndots:1 edns0\n"


def pod(name: str = "web-0", **spec: Any) -> Pod:
    return convert({"metadata": {"name": name, "namespace": "shop"}, "spec": {"containers": [], **spec}}, Pod)


def test_the_hosts_of_a_pod_are_those_of_its_node_and_its_own() -> None:
    aliases = [{"ip": "10.1.1.1", "hostnames": ["db", "db.local"]}, {"ip": "10.1.1.2", "hostnames": ["cache"]}]
    assert hosts_file(pod(hostAliases=aliases, subdomain="shop"), NODE, "10.0.0.1", shared=True) == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n10.0.0.9 box\n"
        "10.0.0.1\tweb-0.shop.shop.svc.cluster.local\tweb-0\n"
        "\n# Entries added by HostAliases.\n10.1.1.1\tdb\tdb.local\n10.1.1.2\tcache\n"
    )
    assert hosts_file(pod(hostNetwork=True), NODE, "10.0.0.1", shared=True) == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n10.0.0.9 box\n"
    )


def test_the_hosts_of_a_pod_with_an_address_of_its_own_are_loopback_and_itself() -> None:
    text = hosts_file(pod(subdomain="shop"), NODE, "10.244.0.7", shared=False)
    first, *rest = text.splitlines()
    assert first == "# Kubernetes-managed hosts file."
    assert rest[0] == "127.0.0.1\tlocalhost"
    assert rest[-1] == "10.244.0.7\tweb-0.shop.shop.svc.cluster.local\tweb-0"
    assert "10.0.0.9" not in text


@pytest.mark.parametrize(
    ("name", "spec", "names"),
    [
        ("web", {}, ("web",)),
        ("x" * 62 + "-y", {}, ("x" * 62,)),
        ("web", {"hostname": "h"}, ("h",)),
        ("web", {"hostname": "h", "subdomain": "s"}, ("h.s.shop.svc.cluster.local", "h")),
        ("web", {"hostnameOverride": "o.example", "subdomain": "s"}, ("o.example",)),
    ],
)
def test_names(name: str, spec: dict[str, Any], names: tuple[str, ...]) -> None:
    assert names_of(pod(name, **spec)) == names


def test_the_last_search_line_counts() -> None:
    assert parse(RESOLV) == Resolver(("10.0.0.2", "10.0.0.3"), ("b.example", "c.example"), ("ndots:1", "edns0"))


CONFIG = {
    "nameservers": ["10.0.0.3", "1.1.1.1", "8.8.8.8"],
    "searches": ["own.example", "b.example"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "debug"}],
}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"dnsPolicy": "ClusterFirst"}, None),
        ({"dnsPolicy": "Default"}, None),
        ({"dnsPolicy": "None"}, Resolver()),
        (
            {"dnsPolicy": "None", "dnsConfig": CONFIG},
            Resolver(("10.0.0.3", "1.1.1.1", "8.8.8.8"), ("own.example", "b.example"), ("ndots:2", "debug")),
        ),
        (
            {"dnsPolicy": "ClusterFirst", "dnsConfig": CONFIG},
            Resolver(
                ("10.0.0.2", "10.0.0.3", "1.1.1.1"),
                ("b.example", "c.example", "own.example"),
                ("ndots:2", "edns0", "debug"),
            ),
        ),
    ],
)
def test_resolvers(spec: dict[str, Any], wanted: Resolver | None) -> None:
    assert resolver(pod(**spec), RESOLV) == wanted
