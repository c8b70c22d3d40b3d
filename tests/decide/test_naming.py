"""/etc/hosts and the names of pods."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.pod.naming import hosts_file, names_of

NODE = "127.0.0.1 localhost\n10.0.0.9 box\n"


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
