"""What the second attack did not come to: expressions at random, cardinality of metrics, conversion webhooks, many
definitions in OpenAPI, 20,000 connections, 1,000 watches at once, priorities and preemption, data of volumes over
reclaim, nodes lost and back."""

import os
import socket
import ssl
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from support.attack_courses.course import DEFAULT, PODS, Course, Scene
from support.eventually import eventually
from support.slow_clients import flood, secured

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NODES, VOLUMES = "/api/v1/nodes", "/api/v1/persistentvolumes"
LOST_SECONDS = 150.0
WORDS = ("self", "oldSelf", "self.a", "self.b", "[1,2]", "{'a':1}", "'x'", "b'y'", "1", "1u", "1.5", "true", "null")
TYPED = ("duration('1h')", "timestamp('2020-01-01T00:00:00Z')", "quantity('1Ki')", "url('https://a')", "ip('::1')")
SIGNS = ("+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in")
METHODS = ("size()", "matches('(a*)*b')", "all(x,x==x)", "map(y,[y,y])", "filter(z,z>0)", "split(',')", "sum()")
OTHERS = ("format([1])", "indexOf('a')", "exists_one(w,w)", "orValue(1)", "getHours()", "isSorted()", "replace('','x')")


def definition(plural: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = {"plural": plural, "singular": plural, "kind": plural.title(), "listKind": f"{plural.title()}List"}
    version = {"served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", **schema}}}
    versions = [version | {"name": "v1"}, version | {"name": "v2", "storage": False}]
    spec = {"group": "reach.io", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": f"{plural}.reach.io"}, "spec": spec | more}


def expression(scene: Scene, levels: int) -> str:
    """Of CEL's own words, right or wrong."""
    chance = scene.chance
    if not levels:
        return chance.choice((*WORDS, *TYPED))
    inner = expression(scene, levels - 1)
    match chance.randrange(5):
        case 0:
            return f"({inner} {chance.choice(SIGNS)} {expression(scene, levels - 1)})"
        case 1:
            return f"{inner}.{chance.choice((*METHODS, *OTHERS))}"
        case 2:
            return f"[{inner}, {expression(scene, levels - 1)}][{chance.randrange(3)}]"
        case 3:
            return f"({inner} ? {expression(scene, levels - 1)} : {inner})"
    return f"!({inner})"


def expressions(scene: Scene) -> None:
    for _ in range(scene.count(300)):
        rules = [{"rule": expression(scene, scene.chance.randrange(1, 7))} for _ in range(5)]
        inner = {"type": "string", "maxLength": 20}
        properties = {"a": inner, "b": {"type": "array", "maxItems": 10, "items": inner}}
        schema = {
            "properties": {"spec": {"type": "object", "properties": properties, "x-kubernetes-validations": rules}}
        }
        answer = scene.send("POST", f"{CRDS}?dryRun=All", definition("xs", schema))
        assert answer.status in (201, 422), answer.body


def cardinality(scene: Scene) -> None:
    """Whatever names, methods and paths are asked with, there are no more series afterwards but for new kinds of
    answers."""

    def series() -> int:
        return len(scene.send("GET", "/metrics", None, {200}).body.splitlines())

    for verb in ("GET", "PUT", "DELETE", "PATCH", "POST", "OPTIONS", "HEAD"):
        scene.victim.ask(verb, f"{PODS}/none", {} if verb != "GET" else None)
    before = series()
    for _ in range(scene.count(1000)):
        name, verb = scene.name(), scene.chance.choice(("GET", "DELETE", scene.name().replace("-", "").upper()))
        path = scene.chance.choice(
            (f"/api/v1/namespaces/{name}/pods/{name}", f"/apis/{name}/v1/{name}", f"/{name}", f"{PODS}/{name}/{name}")
        )
        scene.victim.ask(verb, path, headers={"User-Agent": name})
    assert series() - before < 400, (before, series())


def conversions(scene: Scene) -> None:
    """Of a webhook that is not there: reading in the other version fails in time, in the stored one it does not."""
    client = {"url": "https://127.0.0.1:1/"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    schema = {"x-kubernetes-preserve-unknown-fields": True}
    body = definition("ws", schema, conversion={"strategy": "Webhook", "webhook": webhook})
    if scene.send("POST", CRDS, body, {201, 422}).status == 422:
        return  # a server that calls none says so at once
    place = "/apis/reach.io/{}/namespaces/default/ws"
    scene.until(lambda: scene.victim.ask("GET", place.format("v1")).status == 200, "the kind is served")
    try:
        for number in range(scene.count(30)):
            obj = {"apiVersion": "reach.io/v1", "kind": "Ws", "metadata": {"name": f"w{number}"}}
            scene.send("POST", place.format("v1"), obj, {201})
        scene.send("GET", place.format("v1"), None, {200})
        for path in (place.format("v2"), place.format("v2") + "/w0"):
            answer = scene.send("GET", path, None, {500})
            assert b"conversion webhook" in answer.body, answer.body
    finally:
        scene.send("DELETE", f"{CRDS}/ws.reach.io", None, {200})


def documents(scene: Scene) -> None:
    """Many definitions of many properties, all of which the documents of OpenAPI tell."""
    properties = {f"p{number}": {"type": "string", "description": "x" * 50} for number in range(200)}
    names = [f"doc{number}s" for number in range(scene.count(40))]
    try:
        for name in names:
            scene.send("POST", CRDS, definition(name, {"properties": properties}), {201})
            scene.send("GET", "/openapi/v3", None, {200})
        for path in ("/openapi/v2", "/openapi/v3/apis/reach.io/v1", "/apis", "/apis/reach.io/v1"):
            scene.send("GET", path, None, {200})
    finally:
        for name in names:
            scene.send("DELETE", f"{CRDS}/{name}.reach.io", None, {200, 404})


def connections(scene: Scene) -> None:
    flood(scene.victim, scene.count(20_000), b"")


def sessions(scene: Scene) -> None:
    """1,000 watches at once, half of which stay half-open: the client's side is shut down without a word."""
    request = f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with ExitStack() as open_:
        sockets: list[ssl.SSLSocket] = []
        for number in range(scene.count(1000)):
            sock = open_.enter_context(secured(scene.victim))
            sock.sendall(request)
            if number % 2:
                sock.shutdown(socket.SHUT_WR)
            sockets.append(sock)
        scene.send("POST", f"{DEFAULT}/configmaps", {"metadata": {"name": scene.name()}}, {201})
        scene.send("GET", PODS, None, {200})


def priorities(scene: Scene) -> None:
    """Pods that preempt one another, upwards: at the end the last stand, and the node promises no more than it has."""

    def pod(name: str, rank: int) -> dict[str, Any]:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "300m"}}}
        spec = {"containers": [container], "priorityClassName": f"rank{rank}", "terminationGracePeriodSeconds": 0}
        return {"metadata": {"name": name}, "spec": spec}

    ranks = range(1, 1 + max(2, scene.count(5)))
    try:
        for rank in ranks:
            scene.send("POST", CLASSES, {"metadata": {"name": f"rank{rank}"}, "value": 1000 * rank}, {201})
        refused = pod("critical", 1)
        refused["spec"]["priority"] = 2_000_000_000
        scene.send("POST", PODS, refused, {403, 422})
        for rank in ranks:
            for number in range(scene.count(30)):
                scene.send("POST", PODS, pod(f"p{rank}-{number}", rank), {201})

        def stands() -> bool:
            items = scene.send("GET", PODS, None, {200}).json()["items"]
            running = [item["metadata"]["name"] for item in items if item["status"].get("phase") == "Running"]
            mine = [name for name in running if name.startswith("p")]
            return bool(mine) and all(name.startswith(f"p{ranks[-1]}-") for name in mine)

        scene.until(stands, "only pods of the highest rank run")
    finally:
        scene.send("DELETE", PODS, None, {200})
        for rank in ranks:
            scene.send("DELETE", f"{CLASSES}/rank{rank}", None, {200, 404})


def _plant(directory: Path, levels: int) -> None:
    """What a container can: a secret, and directories within each other, as deep as no path can name."""
    (directory / "secret").write_text("of the first claim")
    below = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=below)
        above, below = below, os.open("d", os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(below)


def _gone(scene: Scene, path: str) -> bool:
    return scene.victim.ask("GET", path).status == 404


def reclaimed(scene: Scene) -> None:
    """A claim of a name that another had before finds nothing of its data, whatever that left in the directory."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "again"}}]
    container = {"name": "c", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 0}
    before: list[str] = []
    for _ in range(max(2, scene.count(5))):
        pod, claim = scene.name(), f"{DEFAULT}/persistentvolumeclaims/again"
        scene.send("POST", claim.rpartition("/")[0], {"metadata": {"name": "again"}, "spec": wanted}, {201})
        scene.send("POST", PODS, {"metadata": {"name": pod}, "spec": spec}, {201})

        def running(pod: str = pod) -> bool:
            return bool(scene.send("GET", f"{PODS}/{pod}", None, {200}).json()["status"].get("phase") == "Running")

        scene.until(running, "the pod with the claim runs")
        name = scene.send("GET", claim, None, {200}).json()["spec"]["volumeName"]
        path = scene.send("GET", f"{VOLUMES}/{name}", None, {200}).json()["spec"]["local"]["path"]
        assert name not in before
        assert os.listdir(path) == []
        _plant(Path(path), 200 + scene.count(2000))
        scene.send("DELETE", f"{PODS}/{pod}", None, {200})
        scene.send("DELETE", claim, None, {200})
        scene.until(partial(_gone, scene, f"{VOLUMES}/{name}"), "the volume is gone")
        assert not os.path.exists(path)
        before.append(name)


def nodes_lost(scene: Scene) -> None:
    """Nodes whose leases nobody renews are taken for lost, and for well again as soon as one speaks."""
    names = [f"lost-{number}" for number in range(scene.count(50))]

    def speaks(name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"conditions": [ready | {"lastHeartbeatTime": f"{now}Z", "lastTransitionTime": f"{now}Z"}]}
        scene.send("PATCH", f"{NODES}/{name}/status", {"status": status}, {200}, "application/merge-patch+json")

    def ready() -> set[str]:
        items = scene.send("GET", NODES, None, {200}).json()["items"]
        found = {item["metadata"]["name"]: item["status"].get("conditions", []) for item in items}
        return {next((c["status"] for c in found[name] if c["type"] == "Ready"), "") for name in names}

    try:
        for name in names:
            scene.send("POST", NODES, {"metadata": {"name": name}}, {201})
            speaks(name)
        eventually(lambda: ready() == {"Unknown"}, within=LOST_SECONDS, what="all are taken for lost")
        for name in names:
            speaks(name)
        scene.until(lambda: ready() == {"True"}, "all are well again")
        scene.until(lambda: b"node.kubernetes.io/unreachable" not in scene.send("GET", NODES).body, "no taint is left")
    finally:
        for name in names:
            scene.send("DELETE", f"{NODES}/{name}", None, {200, 404})


COURSES = (
    Course("expressions at random", ("text of an expression",), expressions),
    Course("cardinality of metrics", (), cardinality),
    Course("a conversion webhook that is not there", ("the answer of a webhook",), conversions),
    Course("documents of many definitions", ("values (objects",), documents, stored_mib=40),
    Course("20,000 connections", ("connections",), connections, long=True),
    Course("1,000 watches, half of them half-open", ("idle connection",), sessions),
    Course("pods that preempt one another", (), priorities, settle=1.0),
    Course("data of volumes over reclaim", (), reclaimed),
    Course("nodes lost and back", (), nodes_lost, long=True),
)
