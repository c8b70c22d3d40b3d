"""Bytes on a connection, large collections, caches, times: what no single payload of the suite says."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager

from support.attack_courses.course import DEFAULT, MAPS, PODS, Course, Scene, config_map
from support.eventually import PATIENCE

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
ENDS = (2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 10**30, 0, -1, -(2**63))
EXPRESSIONS = (
    "labelSelector=a+in+({}x",
    "labelSelector=a{}%3Ex",
    "fieldSelector=metadata.name%3D{}x%0Ax",
    "labelSelector={}",
    "continue={}",
    "resourceVersion={}",
    "fieldManager={}",
    "sinceTime={}",
)


def statuses(heard: bytes) -> list[int]:
    return [int(line.split()[1]) for line in heard.split(b"\r\n") if line.startswith(b"HTTP/1.")]


def trailers(scene: Scene) -> None:
    for _ in range(5):
        lines = b"Impersonate-User: root\r\nX-A: " + b"b" * scene.chance.choice((1, 8000)) + b"\r\n"
        heard = scene.victim.raw(CHUNKED + lines * scene.chance.choice((1, 100, 3000)) + b"\r\n" + LAST)
        assert statuses(heard) in ([400], [403]), heard[:300]  # and not what comes behind it


def ahead(scene: Scene) -> None:
    count = scene.count(5000)
    assert set(statuses(scene.victim.raw(GET * count + LAST))) == {200}
    assert len(statuses(scene.victim.raw(CHUNKED + b"\r\n" + GET * count))) <= 1  # what comes behind it may undo it


def expressions(scene: Scene) -> None:
    for form in EXPRESSIONS:
        filling = scene.chance.choice(("+", "a", "a.", "(", "%5C", "a,", "%09", "-", "1:", "Z")) * scene.count(20_000)
        scene.send("GET", f"{MAPS}?{form.format(filling[:60_000])}")


@contextmanager
def kept(scene: Scene, sizes: list[int], **meta: object) -> Iterator[list[str]]:
    """ConfigMaps of these sizes in a namespace of their own, until the end."""
    place, names = scene.name(), [f"m{number}" for number in range(len(sizes))]
    scene.send("POST", "/api/v1/namespaces", {"metadata": {"name": place}}, {201})
    path = f"/api/v1/namespaces/{place}/configmaps"
    for name, size in zip(names, sizes, strict=True):
        scene.send("POST", path, config_map(name, size, scene.chance, **meta), {201})
    try:
        yield [path, *(f"{path}/{name}" for name in names)]
    finally:
        scene.send("DELETE", path, None, {200})


def lists(scene: Scene) -> None:
    """Each object compared with a thousand values, and made into rows."""
    labels = {f"l{number}": "x" * 60 for number in range(60)}
    values = ",".join(f"v{number}" for number in range(1000))
    with kept(scene, [4000] * scene.count(600), labels=labels) as (path, *names):
        for query in (f"labelSelector=l1+notin+({values})", "fieldSelector=metadata.name!%3Da", "limit=7"):
            scene.send("GET", f"{path}?{query}", None, {200})
        table = "application/json;as=Table;g=meta.k8s.io;v=v1"
        answer = scene.victim.ask("GET", path, headers={"Accept": table})
        assert len(answer.json()["rows"]) >= len(names)


def kept_objects(scene: Scene) -> None:
    """Small objects in number and some large ones, each read again and again, by everything that decodes it."""
    with kept(scene, [15_000] * scene.count(600) + [900_000] * 6) as (path, *names):
        for name in scene.chance.choices(names, k=scene.count(600)):
            scene.send("GET", name, None, {200})
            scene.send("PATCH", name, {"metadata": {"labels": {"a": scene.name()}}}, {200}, MERGE)
        scene.send("GET", f"{path}?labelSelector=a", None, {200})


MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def caches(scene: Scene) -> None:
    """Texts that are never the same twice: paths, selectors, headers, quantities, names of fields."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", scene.victim.port, context=scene.victim.tls(), timeout=60 * PATIENCE
    )
    for number in range(scene.count(4000)):
        text = f"{scene.chance.getrandbits(64):x}"
        long = text * scene.chance.choice((1, 100, 700))
        query, headers = "", {}
        match number % 5:
            case 0:
                query = f"labelSelector=a%3D{text}"
            case 1:
                query = f"labelSelector=a+in+({','.join(text + str(number) for number in range(200))})"
            case 2:
                query = f"fieldSelector=metadata.name%3D{long}"
            case 3:
                headers = {"Accept": f"application/json;a={long[:8000]}", "User-Agent": long}
        path = f"{MAPS}/{long}" if number % 5 == 4 else f"{MAPS}?{query}"
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 400, 404, 406, 414), answer.status
        scene.victim.requests += 1
    connection.close()
    for _ in range(scene.count(200)):
        amount = f"{scene.chance.getrandbits(60)}.{scene.chance.getrandbits(60)}m"
        limits = {f"example.com/{scene.chance.getrandbits(64):x}": amount for _ in range(20)} | {"cpu": amount}
        spec = {"containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}]}
        scene.send("POST", f"{PODS}?dryRun=All", {"metadata": {"name": scene.name()}, "spec": spec})


def moments(scene: Scene) -> None:
    """Numbers of seconds that lead beyond all of time."""
    token = f"{DEFAULT}/serviceaccounts/default/token"
    for number in scene.chance.sample(ENDS, 6):
        name = scene.name()
        containers = [{"name": "c", "image": "x"}]
        pod: dict[str, object] = {"containers": containers, "activeDeadlineSeconds": number}
        pod["terminationGracePeriodSeconds"] = number
        tolerations = [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": number}]
        scene.send("POST", PODS, {"metadata": {"name": name}, "spec": pod | {"tolerations": tolerations}})
        scene.send("GET", f"{PODS}/{name}/log?sinceSeconds={number}&tailLines={number}")
        scene.send("DELETE", f"{PODS}/{name}?gracePeriodSeconds={number}")
        scene.send("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        scene.send("POST", token, {"spec": {"expirationSeconds": number}})
        lease = {"holderIdentity": "a", "leaseDurationSeconds": number, "leaseTransitions": number}
        lease |= {"acquireTime": "9999-12-31T23:59:59.999999Z", "renewTime": "0001-01-01T00:00:00.000000Z"}
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        scene.send("POST", leases, {"metadata": {"name": name}, "spec": lease})
        if number > 2**63:  # any other is a watch for so long
            scene.send("GET", f"{MAPS}?watch=1&timeoutSeconds={number}", None, {400})
        job: dict[str, object] = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
        job |= {"ttlSecondsAfterFinished": number, "activeDeadlineSeconds": number, "backoffLimit": number}
        scene.send("POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": name}, "spec": job})
        cron = {"schedule": "* * * * *", "startingDeadlineSeconds": number, "jobTemplate": {"spec": job}}
        crons = "/apis/batch/v1/namespaces/default/cronjobs"
        scene.send("POST", crons, {"metadata": {"name": name}, "spec": cron})
        scene.send("DELETE", f"{crons}/{name}")
        scene.send("DELETE", f"/apis/batch/v1/namespaces/default/jobs/{name}?propagationPolicy=Background")


def managers(scene: Scene) -> None:
    """Each manager owns the same keys, and the server writes down that it does."""
    name = scene.name()
    keys = {f"k{number}": "" for number in range(13_000)}
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": keys}).encode()
    got = [
        scene.send("PATCH", f"{MAPS}/{name}?fieldManager=m{number}", body, {200, 201, 413}, APPLY).status
        for number in range(10)
    ]
    assert got[0] == 201
    assert got[-1] == 413
    other = body.replace(b'""', b'"x"')
    scene.send("PATCH", f"{MAPS}/{name}?fieldManager=other", other, {409}, APPLY)
    scene.send("PATCH", f"{MAPS}/{name}?fieldManager=m0", body, {200}, APPLY)
    scene.send("PATCH", f"{MAPS}/{name}", {"data": {"k5": scene.name()}}, {200}, MERGE)
    scene.send("PATCH", f"{MAPS}/{name}?fieldManager=other&force=true", other, {200}, APPLY)
    scene.send("DELETE", f"{MAPS}/{name}", None, {200})


def violations(scene: Scene) -> None:
    place = scene.name()
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("warn", "audit")}
    scene.send("POST", "/api/v1/namespaces", {"metadata": {"name": place, "labels": labels}}, {201})
    paths = [{"name": f"v{number}", "hostPath": {"path": "/" + "a" * 200}} for number in range(1000)]
    spec = {"containers": [{"name": "c", "image": "x"}], "volumes": paths}
    scene.send("POST", f"/api/v1/namespaces/{place}/pods", {"metadata": {"name": "a"}, "spec": spec}, {201})
    scene.send("DELETE", f"/api/v1/namespaces/{place}", None, {200})


def existing_pods(scene: Scene) -> None:
    place = scene.name()
    scene.send("POST", "/api/v1/namespaces", {"metadata": {"name": place}}, {201})
    where = f"/api/v1/namespaces/{place}"
    spec = {"hostNetwork": True, "containers": [{"name": "c", "image": "x"}], "nodeSelector": {"no": "where"}}
    for number in range(scene.count(1000)):
        scene.send("POST", f"{where}/pods", {"metadata": {"name": f"p{number}"}, "spec": spec}, {201})
    for level in ("restricted", "baseline", "privileged"):
        labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
        scene.send("PATCH", where, labels, {200}, MERGE)
    scene.send("DELETE", f"{where}/pods", None, {200})
    scene.send("DELETE", where, None, {200})


COURSES = (
    Course("trailers", ("trailers behind",), trailers),
    Course("requests sent ahead", ("requests sent ahead",), ahead),
    Course("long texts for expressions", ("regular expressions",), expressions),
    Course("lists", ("what a list compares",), lists, stored_mib=20),
    Course(
        "objects read again", ("decoded objects that are kept", "kept lines of watches"), kept_objects, stored_mib=60
    ),
    Course("texts never twice", ("other caches",), caches, stored_mib=20),
    Course("moments", ("moments that",), moments),
    Course("managers of the same keys", ("values of a stored object", "conflicts that"), managers, stored_mib=20),
    Course("violations", ("names and values of one violation",), violations),
    Course("pods of a namespace that is restricted", ("existing pods looked at",), existing_pods, stored_mib=30),
)
