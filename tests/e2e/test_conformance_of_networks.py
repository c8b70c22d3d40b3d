"""Conformance specs of upstream that need pods with addresses and Services, step by step, each under its own name.

Specs of names (DNS) are in other files. Where a spec asks by a Service's name, here it is asked by its address.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from support import netexec
from support.eventually import eventually
from support.services import free_port
from support.up import IMAGE, Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(180)]
PORTS = ("tcp/80", "udp/80", "tcp/8080", "tcp/100", "tcp/101")
PAIR = {"app": "pair"}


def pod(name: str, *ports: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    app, volumes = netexec.container(*ports)
    made = manifest(name, app, **{"hostNetwork": False, "volumes": volumes, **spec})
    made["metadata"]["labels"] = labels or {"app": name}
    return made


@pytest.fixture(scope="module")
def pair(cluster: Up) -> Iterator[dict[str, str]]:
    """Two pods that serve on the same ports, and their addresses."""
    cluster.apply(pod("pair-1", *PORTS, labels=PAIR), pod("pair-2", *PORTS, labels=PAIR))
    yield {name: cluster.pod_when(name, running, "runs")["status"]["podIP"] for name in ("pair-1", "pair-2")}
    cluster.ok("delete", "pod/pair-1", "pod/pair-2", "--now")


def from_pod(up: Up, asking: str, host: str, port: int, *, kind: str = "tcp", times: int = 1) -> list[str]:
    """The answers that the pod gets; without one it is empty."""
    words = (*netexec.PROGRAM, "ask", kind, host, str(port), str(times))
    return up.ok("exec", asking, "--", *words).split("\n")[:times]


def from_node(host: str, port: int, *, kind: str = "tcp", times: int = 1) -> list[str]:
    return [netexec.ask(kind, host, port) for _ in range(times)]


def becomes(look: Callable[[], object], wanted: object, what: str) -> None:
    eventually(look, lambda seen: seen == wanted, within=30, what=what)


def reach(up: Up, host: str, port: int, wanted: set[str], *, kind: str = "tcp") -> None:
    """Exactly these answer in the end, a pod and the node; nobody: {""}."""
    what = f"{wanted} at {host}:{port}/{kind}"
    becomes(lambda: set(from_pod(up, "pair-1", host, port, kind=kind, times=12)), wanted, f"{what} for a pod")
    becomes(lambda: set(from_node(host, port, kind=kind, times=12)), wanted, f"{what} for the node")


def service(up: Up, name: str, **spec: Any) -> dict[str, Any]:
    """As the API has it, with its addresses."""
    spec = {"selector": PAIR, "ports": [{"port": 80}], **spec}
    up.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    return up.get("service", name)


def node_address(up: Up) -> str:
    return str(up.get("pod", "pair-1")["status"]["hostIP"])


# ---------------------------------------------------------------- Networking Granular Checks: Pods


@pytest.mark.parametrize("kind", ["http", "udp"])
def test_should_function_for_intra_pod_communication(kind: str, cluster: Up, pair: dict[str, str]) -> None:
    protocol = kind.replace("http", "tcp")
    for name, address in pair.items():
        for asking in pair:
            assert from_pod(cluster, asking, address, 80, kind=protocol) == [name]


@pytest.mark.parametrize("kind", ["http", "udp"])
def test_should_function_for_node_pod_communication(kind: str, pair: dict[str, str]) -> None:
    for name, address in pair.items():
        assert from_node(address, 80, kind=kind.replace("http", "tcp")) == [name]


# ---------------------------------------------------------------- EndpointSlice, EndpointsController


def test_should_create_endpoints_and_endpointslices_for_pods_matching_a_service(cluster: Up) -> None:
    """Also: EndpointsController should create Endpoints for Pods matching a Service. Ports are found by their names,
    which are at other numbers in each pod.
    """
    shape = {"one": ({"foo": "bar", "baz": "qux"}, 3000, 3001), "two": ({"foo": "bar"}, 3001, 3000)}
    for name, (labels, example, other) in shape.items():
        ports = [{"name": "example-name", "containerPort": example}, {"name": "other-port", "containerPort": other}]
        made = manifest(name, {"name": "c", "ports": ports}, hostNetwork=False)
        made["metadata"]["labels"] = labels
        cluster.apply(made)
    numbered = {"name": "example", "port": 80, "targetPort": 3000}
    named = {"name": "example", "port": 80, "targetPort": "example-name"}
    service(cluster, "first", selector={"foo": "bar"}, ports=[numbered], publishNotReadyAddresses=True)
    service(cluster, "second", selector={"foo": "bar", "baz": "qux"}, ports=[named], publishNotReadyAddresses=True)
    service(cluster, "third", selector={"foo": "bar"}, ports=[named], publishNotReadyAddresses=True)
    at = {name: cluster.pod_when(name, running, "runs")["status"]["podIP"] for name in shape}
    wanted = {
        "first": {(at["one"], 3000), (at["two"], 3000)},
        "second": {(at["one"], 3000)},
        "third": {(at["one"], 3000), (at["two"], 3001)},
    }
    for name, places in wanted.items():
        becomes(partial(endpoints, cluster, name), places, f"Endpoints of {name}")
        becomes(partial(slices, cluster, name), places, f"slices of {name}")
    cluster.ok("delete", "service", *wanted)
    for name in wanted:
        becomes(partial(slices, cluster, name), set(), f"no slice of {name}")
    cluster.ok("delete", "pod", *shape, "--now")


def endpoints(up: Up, name: str) -> set[tuple[str, int]]:
    found = up.kubectl("get", "endpoints", name, "-o", "json")
    subsets = json.loads(found.out).get("subsets", []) if found.code == 0 else []
    pairs = ((subset, one) for subset in subsets for one in subset.get("addresses", []))
    return {(one["ip"], port["port"]) for subset, one in pairs for port in subset["ports"]}


def slices(up: Up, name: str) -> set[tuple[str, int]]:
    label = f"kubernetes.io/service-name={name}"
    items = json.loads(up.ok("get", "endpointslices", "-l", label, "-o", "json"))["items"]
    pairs = ((item, one) for item in items for one in item["endpoints"] or [] if one["conditions"].get("ready"))
    return {(one["addresses"][0], port["port"]) for item, one in pairs for port in item["ports"] or []}


def own_slice(up: Up, name: str, of: str, address: str, ports: list[dict[str, Any]]) -> None:
    up.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": of}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": ports,
        }
    )


def test_should_support_a_service_with_multiple_endpoint_ips_specified_in_multiple_endpointslices(
    cluster: Up, pair: dict[str, str]
) -> None:
    made = service(cluster, "several", selector=None, ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}])
    ports = [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 8080, "protocol": "TCP"}]
    for name, address in pair.items():
        own_slice(cluster, f"several-{name}", "several", address, ports)
    for port in (80, 81):
        reach(cluster, made["spec"]["clusterIP"], port, set(pair))
    cluster.ok("delete", "service/several", *(f"endpointslice/several-{name}" for name in pair))


def test_should_support_a_service_with_multiple_ports_specified_in_multiple_endpointslices(
    cluster: Up, pair: dict[str, str]
) -> None:
    made = service(cluster, "several", selector=None, ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}])
    address = pair["pair-2"]
    own_slice(cluster, "several-a", "several", address, [{"name": "a", "port": 80, "protocol": "TCP"}])
    own_slice(cluster, "several-b", "several", address, [{"name": "b", "port": 8080, "protocol": "TCP"}])
    for port in (80, 81):
        reach(cluster, made["spec"]["clusterIP"], port, {"pair-2"})
    cluster.ok("delete", "service/several", "endpointslice/several-a", "endpointslice/several-b")


# ---------------------------------------------------------------- HostPort


def test_validates_that_there_is_no_conflict_between_pods_with_same_host_port_but_different_host_ip_and_protocol(
    cluster: Up, pair: dict[str, str]
) -> None:
    port, node = free_port(), node_address(cluster)
    shape = {"held-1": ("127.0.0.1", "TCP"), "held-2": (node, "TCP"), "held-3": (node, "UDP")}
    for name, (address, protocol) in shape.items():
        made = pod(name, "tcp/8080", "udp/8080")
        held = {"containerPort": 8080, "hostPort": port, "protocol": protocol, "hostIP": address}
        made["spec"]["containers"][0]["ports"] = [held]
        cluster.apply(made)
    for name in shape:
        cluster.pod_when(name, running, "runs")
    for name, (address, protocol) in shape.items():
        becomes(partial(from_node, address, port, kind=protocol.lower()), [name], f"{name} answers")
    assert from_pod(cluster, "pair-1", node, port) == ["held-2"]
    assert from_pod(cluster, "pair-1", node, port, kind="udp") == ["held-3"]
    cluster.ok("delete", "pod", *shape, "--now")


# ---------------------------------------------------------------- Services


def test_should_serve_a_basic_endpoint_from_pods(cluster: Up, pair: dict[str, str]) -> None:
    """And should serve multiport endpoints from pods: the second port has another number in each pod's place."""
    ports = [{"name": "one", "port": 80, "targetPort": 100}, {"name": "two", "port": 81, "targetPort": 101}]
    host = service(cluster, "basic", selector={"app": "basic"}, ports=ports)["spec"]["clusterIP"]
    there = set[str]()
    for change in ("+basic-1", "+basic-2", "-basic-1", "-basic-2"):
        name = change[1:]
        if change[0] == "+":
            cluster.apply(pod(name, "tcp/100", "tcp/101", labels={"app": "basic"}))
            cluster.pod_when(name, running, "runs")
            there.add(name)
        else:
            cluster.ok("delete", f"pod/{name}", "--now")
            there.discard(name)
        for port in (80, 81):
            becomes(partial(answered, from_node, host, port), there or {""}, f"{there} at {port} for the node")
        becomes(partial(answered, partial(from_pod, cluster, "pair-1"), host, 81), there or {""}, f"{there} for a pod")
    cluster.ok("delete", "service/basic")


def answered(ask: Callable[..., list[str]], host: str, port: int) -> set[str]:
    return set(ask(host, port, times=8))


def test_should_serve_endpoints_on_same_port_and_different_protocols(cluster: Up, pair: dict[str, str]) -> None:
    both = [{"name": "t", "port": 80, "protocol": "TCP"}, {"name": "u", "port": 80, "protocol": "UDP"}]
    host = service(cluster, "both", ports=both)["spec"]["clusterIP"]
    for kind in ("tcp", "udp"):
        reach(cluster, host, 80, set(pair), kind=kind)
    for kept, gone in (("TCP", "udp"), ("UDP", "tcp")):
        ports = [{"op": "replace", "path": "/spec/ports", "value": [port for port in both if port["protocol"] == kept]}]
        cluster.ok("patch", "service/both", "--type=json", "--patch", json.dumps(ports))
        reach(cluster, host, 80, set(pair), kind=kept.lower())
        becomes(partial(from_node, host, 80, kind=gone), [""], f"no {gone}")
    cluster.ok("delete", "service/both")


def test_should_be_able_to_create_a_functioning_node_port_service(cluster: Up, pair: dict[str, str]) -> None:
    made = service(cluster, "open", type="NodePort")
    port = made["spec"]["ports"][0]["nodePort"]
    reach(cluster, made["spec"]["clusterIP"], 80, set(pair))
    reach(cluster, node_address(cluster), port, set(pair))
    cluster.ok("delete", "service/open")


@pytest.mark.parametrize("end", ["ClusterIP", "NodePort"])
def test_should_be_able_to_change_the_type_from_external_name_to(end: str, cluster: Up, pair: dict[str, str]) -> None:
    """And back: from ClusterIP, from NodePort to ExternalName."""
    name = "changing"
    external = {"type": "ExternalName", "externalName": "example.com", "selector": None, "ports": None}
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": external})
    spec = {"type": end, "externalName": None, "selector": PAIR, "ports": [{"port": 80, "targetPort": 8080}]}
    cluster.ok("patch", f"service/{name}", "--patch", json.dumps({"spec": spec}))
    made = cluster.get("service", name)["spec"]
    assert "externalName" not in made
    places = [(made["clusterIP"], 80)]
    places += [(node_address(cluster), made["ports"][0]["nodePort"])] if end == "NodePort" else []
    for place in places:
        reach(cluster, *place, set(pair))
    back = {"type": "ExternalName", "externalName": "example.com", "clusterIP": None, "clusterIPs": None}
    cluster.ok("patch", f"service/{name}", "--patch", json.dumps({"spec": back}))
    assert "clusterIP" not in cluster.get("service", name)["spec"]
    for place in places:
        reach(cluster, *place, {""})
    cluster.ok("delete", f"service/{name}")


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort"])
def test_should_have_session_affinity_work_for_service_with_type(kind: str, cluster: Up, pair: dict[str, str]) -> None:
    """And should be able to switch it, off and on again."""
    spec = service(cluster, "sticky", type=kind, sessionAffinity="ClientIP")["spec"]
    place = (spec["clusterIP"], 80) if kind == "ClusterIP" else (node_address(cluster), spec["ports"][0]["nodePort"])
    asks = (partial(from_pod, cluster, "pair-1", *place, times=15), partial(from_node, *place, times=15))
    for affinity, many in (("ClientIP", 1), ("None", 2), ("ClientIP", 1)):
        cluster.ok("patch", "service/sticky", "--patch", json.dumps({"spec": {"sessionAffinity": affinity}}))
        for ask in asks:
            becomes(partial(answering, ask, set(pair)), many, f"{many} with {affinity}")
    cluster.ok("delete", "service/sticky")


def answering(ask: Callable[[], list[str]], known: set[str]) -> int | None:
    """How many different ones; None while somebody else answers, or nobody."""
    seen = set(ask())
    return len(seen) if seen <= known else None


# ---------------------------------------------------------------- Container Lifecycle Hook


@pytest.mark.parametrize("hook", ["postStart exec", "postStart http", "preStop exec"])
def test_should_execute_hook_properly(hook: str, cluster: Up, pair: dict[str, str]) -> None:
    """The pod with the hook listens on the port of the pod that is asked, 8080."""
    handler, said = pair["pair-2"], hook.replace(" ", "-")
    when, how = hook.split()
    asked = [*netexec.PROGRAM, "ask", "tcp", handler, "8080", "1", f"/echo/{said}"]
    get = {"host": handler, "port": 8080, "path": f"/echo/{said}"}
    made = pod("hooked", "tcp/8080", terminationGracePeriodSeconds=30)
    action = {"exec": {"command": asked}} if how == "exec" else {"httpGet": get}
    made["spec"]["containers"][0]["lifecycle"] = {when: action}
    cluster.apply(made)
    cluster.pod_when("hooked", running, "runs")
    assert (said in netexec.ask("tcp", handler, 8080, "/echoed")) is (when == "postStart")
    cluster.ok("delete", "pod/hooked")
    assert said in json.loads(netexec.ask("tcp", handler, 8080, "/echoed"))


# ---------------------------------------------------------------- KubeletManagedEtcHosts


def test_should_test_kubelet_managed_etc_hosts_file(cluster: Up) -> None:
    own = {"name": "c", "mountPath": "/etc/hosts"}
    file = {"name": "c", "hostPath": {"path": "/etc/hosts", "type": "File"}}
    containers: list[dict[str, Any]] = [{"name": "c1"}, {"name": "c2"}, {"name": "c3", "volumeMounts": [own]}]
    cluster.apply(
        manifest("hosts", *containers, hostNetwork=False, volumes=[file]), manifest("hosts-of-node", *containers[:2])
    )
    hosts = {
        (name, container): cluster.ok("exec", name, "-c", container, "--", "cat", "/etc/hosts")
        for name, many in (("hosts", 3), ("hosts-of-node", 2))
        if cluster.pod_when(name, running, "runs")
        for container in (f"c{number + 1}" for number in range(many))
    }
    managed = {place for place, text in hosts.items() if text.startswith("# Kubernetes-managed hosts file.\n")}
    assert managed == {("hosts", "c1"), ("hosts", "c2")}
    cluster.ok("delete", "pod/hosts", "pod/hosts-of-node", "--now")


# ---------------------------------------------------------------- ServiceAccountIssuerDiscovery

DISCOVERING = """
import json, os, ssl, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount"
token = open(place + "/token").read()
trusted = ssl.create_default_context(cafile=place + "/ca.crt")
def get(path):
    where = "https://" + os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"] + path
    asked = urllib.request.Request(where, headers={"Authorization": "Bearer " + token})
    return json.load(urllib.request.urlopen(asked, context=trusted))
found = get("/.well-known/openid-configuration")
keys = get("/openid/v1/jwks")["keys"]
print(json.dumps({"issuer": found["issuer"], "keys": keys, "token": token}))
"""


def test_should_support_oidc_discovery_of_service_account_issuer(cluster: Up, pair: dict[str, str]) -> None:
    """From a pod, whose token is then verified by what it finds: the key that signed it, and the issuer."""
    said = json.loads(cluster.ok("exec", "pair-1", "--", netexec.PROGRAM[0], "-c", DISCOVERING))
    claims = jwt.decode(said["token"], KeySet.import_key_set({"keys": said["keys"]})).claims
    assert claims["iss"] == said["issuer"]
    assert claims["sub"] == "system:serviceaccount:default:default"


# ---------------------------------------------------------------- Proxy version v1

NS = "/api/v1/namespaces/default"


def test_a_set_of_valid_responses_are_returned_for_both_pod_and_service_proxy(
    cluster: Up, pair: dict[str, str]
) -> None:
    """And ProxyWithPath: every method reaches the pod, by each of them."""
    service(cluster, "proxied", ports=[{"name": "web", "port": 81, "targetPort": 8080}])
    becomes(lambda: len(slices(cluster, "proxied")), 2, "endpoints")
    for base in ("pods/pair-1:8080", "services/proxied:81", "services/proxied:web", "services/http:proxied:81"):
        path = f"{NS}/{base}/proxy/some/path?method=x"
        assert cluster.ok("get", "--raw", path) in pair
        for verb, method in (("create", "POST"), ("replace", "PUT")):
            said = json.loads(cluster.ok(verb, "--raw", path, "-f", "-", stdin="body"))
            assert said == {"method": method, "body": "body", "path": "/some/path?method=x"}
        assert json.loads(cluster.ok("delete", "--raw", path))["method"] == "DELETE"
    cluster.ok("delete", "service/proxied")


def test_should_proxy_through_a_service_and_a_pod(cluster: Up, pair: dict[str, str]) -> None:
    ports = [{"name": "p1", "port": 80, "targetPort": 100}, {"name": "p2", "port": 81, "targetPort": 101}]
    service(cluster, "through", ports=ports)
    becomes(lambda: len(slices(cluster, "through")), 4, "endpoints")
    ways = [f"services/through:{port}" for port in ("p1", "p2", "80", "81")]
    ways += [f"services/http:through:{port}" for port in ("p1", "80")]
    ways += [f"pods/pair-1:{port}" for port in ("80", "8080", "100", "101")] + ["pods/http:pair-1:80"]
    for way in ways:
        assert cluster.ok("get", "--raw", f"{NS}/{way}/proxy/") in pair
    cluster.ok("delete", "service/through")


def test_update_demo_should_create_scale_and_stop_a_replication_controller(cluster: Up) -> None:
    """Update Demo (2) and ReplicationController should serve a basic image on each replica: each answers by the proxy,
    all of them on one port.
    """
    app, volumes = netexec.container("tcp/80")
    template = {
        "metadata": {"labels": {"app": "demo"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"image": IMAGE, **app}], "volumes": volumes},
    }
    spec = {"replicas": 2, "selector": {"app": "demo"}, "template": template}
    cluster.apply({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "demo"}, "spec": spec})
    for many in (2, 1, 2):
        cluster.ok("scale", "rc/demo", f"--replicas={many}")
        becomes(lambda: len(ready_of(cluster, "app=demo") or ()), many, f"{many} replicas")
        for name in ready_of(cluster, "app=demo") or ():
            assert cluster.ok("get", "--raw", f"{NS}/pods/{name}:80/proxy/hostname") == name
    cluster.ok("delete", "rc/demo", "--now")
    becomes(lambda: ready_of(cluster, "app=demo"), set(), "they are gone")


def ready_of(up: Up, selector: str) -> set[str] | None:
    """Names of all pods; None while one is not ready, or ends."""
    items = json.loads(up.ok("get", "pods", "-l", selector, "-o", "json"))["items"]
    if any(not running(item) or "deletionTimestamp" in item["metadata"] for item in items):
        return None
    return {item["metadata"]["name"] for item in items}
