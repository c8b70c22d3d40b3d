"""What one request can ask of an API server that costs it far more than the client: by name, for `support.bounded`.

Each attack sends its requests and returns their answers' status codes. `ANONYMOUS` need no credentials.
"""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from podfit.apiserver.request.protobuf import MEDIA_TYPE as PROTOBUF
from support.bounded import Victim
from support.protobuf import enveloped, part

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PODS_SETTLE_SECONDS = 3.0  # for what scheduler and kubelet do with large pods
Attack = Callable[[Victim], tuple[int, ...]]


def _get(target: str, *, anonymous: bool = False, times: int = 1) -> Attack:
    return lambda victim: tuple(victim.ask("GET", target, anonymous=anonymous).status for _ in range(times))


def _raw(*parts: bytes) -> Attack:
    """The statuses of all answers to these bytes."""
    return lambda victim: tuple(
        int(line.split()[1]) for line in victim.raw(*parts).split(b"\r\n") if line[:7] == b"HTTP/1."
    )


PLAIN = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
BODY = b"POST /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


def _headers(count: int, size: int, name: bytes = b"X-%d") -> bytes:
    lines = b"".join(name.replace(b"%d", b"%d" % i) + b": " + b"a" * size + b"\r\n" for i in range(count))
    return LAST[:-2] + lines + b"\r\n"


ANONYMOUS: dict[str, tuple[Attack, int]] = {
    "repeated parameter": (_get("/healthz?" + "a&" * 9_999 + "a", anonymous=True), 200),
    "too many parameters": (_get("/healthz?" + "a&" * 32_000, anonymous=True), 400),
    "distinct parameters": (_get("/healthz?" + "&".join(f"{i:x}" for i in range(9_999)), anonymous=True), 200),
    "requests sent ahead": (_raw(PLAIN * 3000 + LAST), 200),
    "body in chunks of a byte": (_raw(BODY + b"1\r\na\r\n" * 1_000_000 + b"0\r\n\r\n"), 403),
    "chunk extensions": (_raw(BODY + b"1" + b";a=b" * 500_000 + b"\r\na\r\n0\r\n\r\n"), 403),
    "many large headers": (_raw(_headers(120, 30_000)), 431),
    "the same header again and again": (_raw(_headers(120, 30_000, b"X")), 431),
    "too many headers": (_raw(_headers(1000, 10)), 431),
    "a large Accept": (_raw(_headers(1, 30_000).replace(b"X-0", b"Accept").replace(b"aa", b"a,")), 200),
    "parameters of Accept": (_raw(_headers(1, 30_000).replace(b"X-0", b"Accept").replace(b"aa", b"a;")), 200),
    "impersonation": (_raw(_headers(120, 200, b"Impersonate-Group")), 400),
    "impersonation by extra": (_raw(_headers(120, 200, b"Impersonate-Extra-%d")), 400),
    "a large token": (
        _raw(_headers(1, 30_000).replace(b"X-0: ", b"Authorization: Bearer ").replace(b"aa", b"a.")),
        401,
    ),
    "escaped path": (_get("/" + "%41/" * 16_000, anonymous=True), 403),
}
"""With the status that each is answered with."""

BLANKS = "+" * 60_000
SELECTORS: dict[str, tuple[Attack, int]] = {
    "label selector, open set": (_get(f"/api/v1/pods?labelSelector=a+in+({BLANKS}x"), 400),
    "label selector, blanks before a comparison": (_get(f"/api/v1/pods?labelSelector=a{BLANKS}%3Ex"), 400),
    "label selector, long key": (_get(f"/api/v1/pods?labelSelector={'a' * 60_000}."), 400),
    "label selector, many parts of a prefix": (_get(f"/api/v1/pods?labelSelector={'a.' * 30_000}"), 400),
    "label selector, too many values": (_get(f"/api/v1/pods?labelSelector=a+in+({'b,' * 30_000}b)"), 400),
    "label selector, too many terms": (_get(f"/api/v1/pods?labelSelector={'a,' * 30_000}b"), 400),
    "field selector, blanks": (_get(f"/api/v1/pods?fieldSelector=metadata.name%3D{BLANKS}x%0Ax"), 200),
    "field selector, too many terms": (
        _get(f"/api/v1/pods?fieldSelector={'metadata.name%3Da,' * 3_000}metadata.name%3Da"),
        400,
    ),
}


def _protobuf(keys: int) -> bytes:
    data = b"".join(part(2, part(1, b"k%d" % number)) for number in range(keys))
    return enveloped("v1", "ConfigMap", part(1, part(1, b"big")) + data)


def _put(method: str, path: str, body: object, content_type: str = "application/json") -> Attack:
    """The body is made when the attack begins, and its object is gone when it is over."""

    def attack(victim: Victim) -> tuple[int, ...]:
        made = body() if callable(body) else body
        answer = victim.ask(method, path, made, content_type=content_type)
        if answer.status < 300:
            made_at = path.partition("?")[0] if method != "POST" else f"{path}/big"
            victim.ask("DELETE", f"{made_at}?gracePeriodSeconds=0")  # or a pod would still be there for the next
        return (answer.status,)

    return attack


def _keys(count: int) -> dict[str, str]:
    return {f"k{number}": "" for number in range(count)}


def _config(count: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": _keys(count)}


def _yaml(count: int) -> bytes:
    lines = "".join(f"  k{number}: x\n" for number in range(count))
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\ndata:\n{lines}".encode()


def _pod(container: Mapping[str, object] = MappingProxyType({}), **spec: object) -> dict[str, object]:
    container = {"name": "c", "image": "x", **container}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": {"containers": [container], **spec}}


def _pods(count: int, **lists: Callable[[int], object]) -> Attack:
    """A pod with a list of so many items, in its spec or in its container."""

    def pod() -> dict[str, object]:
        full = {name: [item(number) for number in range(count)] for name, item in lists.items()}
        inner = {name: items for name, items in full.items() if name in ("ports", "env")}
        return _pod(container=inner, **{name: items for name, items in full.items() if name not in inner})

    return _put("POST", PODS, pod)


def _ten_pods() -> Attack:
    """Ten pods as large as may be, at once on one node."""

    def attack(victim: Victim) -> tuple[int, ...]:
        volumes = [{"name": f"v{number}", "emptyDir": {}} for number in range(1_650)]
        names = [f"big{number}" for number in range(10)]
        pods = [_pod(volumes=volumes) | {"metadata": {"name": name}} for name in names]
        codes = [victim.ask("POST", PODS, pod).status for pod in pods]
        time.sleep(PODS_SETTLE_SECONDS)
        for name in names:
            victim.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        return tuple(codes)

    return attack


def _terms(count: int) -> dict[str, object]:
    labels = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 1, "podAffinityTerm": labels} for _ in range(count)]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _managed(count: int) -> dict[str, object]:
    """A ConfigMap that so many have written, as the client says."""
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}
    entries = [{"manager": f"m{number}", **entry} for number in range(count)]
    return _config(1) | {"metadata": {"name": "big", "managedFields": entries}}


def _replaced(body: Callable[[], object]) -> Attack:
    def attack(victim: Victim) -> tuple[int, ...]:
        victim.ask("POST", MAPS, _config(1))
        answer = victim.ask("PUT", f"{MAPS}/big", body())
        victim.ask("DELETE", f"{MAPS}/big")
        return (answer.status,)

    return attack


MAPS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
SSA = f"{MAPS}/big?fieldManager=attack"
APPLY = "application/apply-patch+yaml"
OBJECTS: dict[str, tuple[Attack, int]] = {
    "config map of 190,000 keys": (_put("POST", MAPS, lambda: _config(190_000)), 413),
    "config map of as many keys as it may have": (_put("POST", MAPS, lambda: _config(14_990)), 201),
    "applied config map of 100,000 keys": (_put("PATCH", SSA, lambda: _config(100_000), APPLY), 413),
    "applied config map of 14,990 keys": (_put("PATCH", SSA, lambda: _config(14_990), APPLY), 201),
    "YAML of 100,000 keys": (_put("POST", MAPS, lambda: _yaml(100_000), "application/yaml"), 413),
    "YAML of 14,000 keys": (_put("POST", MAPS, lambda: _yaml(14_000), "application/yaml"), 201),
    "applied YAML of 14,000 keys": (_put("PATCH", SSA, lambda: _yaml(14_000), APPLY), 201),
    "YAML to the base of 60": (
        _put(
            "POST",
            MAPS,
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {a: 1" + b":59" * 50_000 + b"}",
            "application/yaml",
        ),
        201,
    ),
    "protobuf of 1.57 million fields": (_put("POST", REVIEWS, b"k8s\0" + b"\x78\0" * 1_572_000, PROTOBUF), 413),
    "protobuf of 14,990 keys": (_put("POST", MAPS, lambda: _protobuf(14_990), PROTOBUF), 201),
    "a million values": (_put("POST", MAPS, b"[" + b"[]," * 999_999 + b"[]]"), 413),
    "a million values in a patch": (
        _put("PATCH", f"{MAPS}/kube-root-ca.crt", b"[" + b"[]," * 999_999 + b"[]]", "application/json-patch+json"),
        413,
    ),
    "volumes": (_pods(12_000, volumes=lambda n: {"name": f"v{n}", "emptyDir": {}}), 413),
    "ports": (_pods(20_000, ports=lambda n: {"containerPort": n + 1}), 413),
    "tolerations": (_pods(16_000, tolerations=lambda n: {"key": f"k{n}", "operator": "Exists"}), 413),
    "affinity terms": (_put("POST", PODS, lambda: _pod(affinity=_terms(7_000))), 413),
    "most volumes": (_pods(1_650, volumes=lambda n: {"name": f"v{n}", "emptyDir": {}}), 201),
    "most ports": (_pods(2_480, ports=lambda n: {"containerPort": n + 1}), 201),
    "most tolerations": (_pods(1_650, tolerations=lambda n: {"key": f"k{n}", "operator": "Exists"}), 201),
    "most variables": (_pods(1_650, env=lambda n: {"name": f"V{n}", "value": "x"}), 201),
    "most affinity terms": (_put("POST", PODS, lambda: _pod(affinity=_terms(700))), 201),
    "ten pods of most volumes": (_ten_pods(), 201),
    "managed fields": (_put("POST", MAPS, lambda: _managed(2_000)), 201),
    "managed fields put in the place of others": (_replaced(lambda: _managed(2_000)), 200),
}
