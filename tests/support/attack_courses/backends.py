"""Webhooks and aggregated backends that answer what they should not, and conditions that lead to them."""

import base64
import json
from pathlib import Path

from support.attack_courses.course import MAPS, Course, Scene
from support.backends import own_address
from support.spoofed import Answer, Send, spoofed
from support.spoofed_answers import ANSWERS, EXPECTED, GROUP, HOOKS, LISTED, hooks, registered, unregister, until, whole

KINDS = ("validating", "mutating")
SSRF = (
    "https://169.254.169.254/latest/meta-data",
    "https://127.0.0.1:1/",
    "https://[::1]:1/",
    "https://0.0.0.0:1/",
    "https://localhost:1/",
    "https://kubernetes.default.svc/",
    "https://0x7f000001:1/",
)


def _folder(scene: Scene) -> Path:
    folder = scene.directory / scene.name()
    folder.mkdir()
    return folder


def webhook_answers(scene: Scene) -> None:
    names = scene.chance.sample(sorted(set(ANSWERS) - {"interim"}), max(2, scene.count(len(ANSWERS))))
    asked(scene, names)


def interim_answers(scene: Scene) -> None:
    asked(scene, ["interim"])


def asked(scene: Scene, names: list[str]) -> None:
    try:
        with spoofed(_folder(scene), "127.0.0.1") as server:
            server.answers |= ANSWERS
            for name in names:
                hooks(scene.victim, server, name)
                refused = scene.send("POST", MAPS, {"metadata": {"name": scene.name()}}, {500})
                assert b"failed calling webhook" in refused.body
    finally:
        scene.send("DELETE", f"{HOOKS}/spoofed", None, {200, 404})


def redirected(scene: Scene) -> None:
    """Addresses that a cluster should not be led to: what they answer is not told."""
    for url in SSRF:
        client = {"url": url}
        webhook = {
            "name": "a.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
            "clientConfig": client,
            "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
        }
        body = {"metadata": {"name": "spoofed"}, "webhooks": [webhook]}
        if scene.send("POST", HOOKS, body, {201, 422}).status == 201:
            answer = scene.send("POST", MAPS, {"metadata": {"name": scene.name()}}, {500})
            assert b"failed calling webhook" in answer.body
            scene.send("DELETE", f"{HOOKS}/spoofed", None, {200})


def _review(uid: str, operations: list[object]) -> bytes:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    response = {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": patch}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()


def _bombs(scene: Scene) -> list[list[object]]:
    large = {"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}
    copies = [{"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/{n}"} for n in range(40)]
    insertions = [{"op": "add", "path": "/metadata/finalizers/0", "value": "a.b/c"}] * scene.chance.randint(
        5000, 20_000
    )
    return [
        [large, *copies],
        [{"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"] * 50_000}, *insertions],
        [{"op": "add", "path": "/data", "value": {f"k{n}": "" for n in range(60_000)}}],
        [{"op": "add", "path": "/a" * scene.chance.randint(101, 30_000), "value": 1}],
    ]


def patch_bombs(scene: Scene) -> None:
    """A mutating webhook's patches."""
    place = HOOKS.replace("validating", "mutating")
    try:
        with spoofed(_folder(scene), "127.0.0.1") as server:
            for number, operations in enumerate(_bombs(scene)):

                def answer(send: Send, operations: list[object] = operations) -> None:
                    uid = json.loads(server.bodies[-1])["request"]["uid"]
                    whole(_review(uid, operations))(send)

                server.answers[f"b{number}"] = answer
                hooks(scene.victim, server, f"b{number}", where=place)
                name = scene.name()
                scene.send("POST", MAPS, {"metadata": {"name": name}}, {413, 422, 500})
    finally:
        scene.send("DELETE", f"{place}/spoofed", None, {200, 404})


def lists_of_groups(scene: Scene) -> None:
    host = own_address()
    with spoofed(_folder(scene), host, "s.default.svc") as server:
        for name in scene.chance.sample(("large", "endless", "bomb", "cut", "garbage"), max(1, scene.count(5))):
            server.default = ANSWERS[name]
            registered(scene.victim, server, host)
            until(scene.victim, "FailedDiscoveryCheck")
            unregister(scene.victim)


def aggregated(scene: Scene) -> None:
    """Redirects and switches of protocol, which cost no time; and what is silent."""
    answered(scene, ["redirect", "upgrade"])


def silent_backend(scene: Scene) -> None:
    answered(scene, list(EXPECTED))


def answered(scene: Scene, names: list[str]) -> None:
    host = own_address()
    with spoofed(_folder(scene), host, "s.default.svc") as server:
        server.answers["apis"] = whole(LISTED)
        registered(scene.victim, server, host)
        try:
            until(scene.victim, "Passed")
            for name in names:
                server.answers["apis"] = _behind_the_list(server.heads, ANSWERS[name])
                scene.send("GET", f"/apis/{GROUP}/v1/things/{name}", None, {EXPECTED[name]})
        finally:
            unregister(scene.victim)


def _behind_the_list(heads: list[bytes], answer: Answer) -> Answer:
    def send_either(send: Send) -> None:
        (whole(LISTED) if heads[-1].startswith(b"GET /apis/spoofed.example/v1 ") else answer)(send)

    return send_either


COURSES = (
    Course("answers of a webhook", ("the answer of a webhook",), webhook_answers),
    Course("interim answers", ("interim answers",), interim_answers),
    Course("where webhooks lead", ("the answer of a webhook",), redirected),
    Course("patches of a webhook", ("what the copies of a JSON patch", "items that insertions"), patch_bombs),
    Course("lists of an aggregated group", ("the list of what an aggregated",), lists_of_groups),
    Course("redirects of a backend", ("redirects and protocol switches",), aggregated),
    Course("answers of a backend", ("an aggregated backend's answer",), silent_backend, long=True),
)
