"""A pod whose spec was read before is the pod that its whole body says; whatever is odd about a body is read whole."""

import json
from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.pods.validation import pod as rules
from podfit.api.defaults import apply_defaults
from podfit.api.meta import codec
from podfit.apiserver.request.repeated_specs import ENTRY, LARGEST, MOST, RepeatedSpecs
from podfit.core.features import DEFAULT_GATES
from podfit.net.wire import Response
from support.server import Server

PODS = "/api/v1/namespaces/default/pods"
SPEC = {
    "containers": [
        {"name": "app", "image": "registry.example/app:1", "resources": {"limits": {"memory": "64Mi", "cpu": "1"}}},
        {"name": "side", "image": "registry.example/side:1", "ports": [{"containerPort": 80}]},
    ],
    "initContainers": [{"name": "first", "image": "registry.example/init:1"}],
    "volumes": [{"name": "data", "emptyDir": {}}],
}

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}


def body(name: str = "a", *, spec: Any = SPEC, **more: Any) -> bytes:
    meta = {"name": name, "labels": {"app": name}, **more.pop("metadata", {})}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, **more}).encode()


def primed() -> RepeatedSpecs:
    specs = RepeatedSpecs()
    for _ in range(2):
        specs.keep("application/json", body(), whole(body()).spec)
    return specs


def whole(text: bytes) -> Pod:
    return apply_defaults(codec.decode(text, Pod))


@pytest.mark.parametrize(
    "text",
    [
        body("b"),
        body("b", status={}),
        body("b", metadata={"annotations": {"a": '{"x":1}'}, "generateName": "b-", "finalizers": ["a/b"]}),
        body("b", metadata={"ownerReferences": [OWNER]}),
    ],
)
def test_a_known_spec_is_the_very_same_in_a_pod_that_is_as_its_body_says(text: bytes) -> None:
    specs = primed()
    read = specs.read("application/json", text)
    assert read is not None
    assert codec.encode(read) == codec.encode(whole(text))
    again = specs.read("application/json", text)
    assert again is not None
    assert again.spec is read.spec


@pytest.mark.parametrize(
    "text",
    [
        body(spec={**SPEC, "nodeName": "n"}),
        body(status={"phase": "Running"}),
        body(metadata={"managedFields": []}),
        body(metadata={"unknown": 1}),
        body(metadata={"ownerReferences": [{**OWNER, "kind": "", "unknown": 1}]}),
        body(metadata={"ownerReferences": [{"apiVersion": "v1", "name": "web", "uid": "u", "unknown": 1}]}),
        body(metadata={"labels": {}}),
        body(metadata={"creationTimestamp": None}),
        body(metadata={"deletionTimestamp": "2026-01-01T02:00:00+02:00"}),
        body(metadata={"labels": {"a": 1}}),
        body(metadata={"creationTimestamp": "yesterday"}),
        body(other=1),
        body().replace(b'"kind": "Pod"', b'"kind": "Secret"'),
        body().replace(b'"apiVersion": "v1"', b'"apiVersion": "v2"'),
        body().replace(b'{"apiVersion"', b'{"spec": {"nodeName": "n"}, "apiVersion"'),
        body().replace(b'"name": "a"', b'"name": "b", "name": "a"'),
        body().replace(b'"labels"', b'"l\\u0061bels"'),
        body().replace(b'"metadata": ', b'"metadata" : '),
        body()[:-1],
        body() + b"{}",
        body(metadata={"annotations": {"a": "x" * LARGEST}}),
        b"null",
        b"",
    ],
)
def test_what_is_odd_is_read_whole(text: bytes) -> None:
    assert primed().read("application/json", text) is None


def test_no_other_media_type_is_looked_at() -> None:
    assert primed().read("application/yaml", body()) is None


def test_a_spec_is_known_when_it_has_come_twice_with_nothing_odd() -> None:
    specs = RepeatedSpecs()
    for text in (body(other=1), body(), body().replace(b'"kind": "Pod"', b'"kind": "Secret"')):
        specs.keep("application/json", text, PodSpec())
        assert specs.read("application/json", body()) is None
    specs.keep("application/json", body(), PodSpec())
    assert specs.read("application/json", body()) is not None


@pytest.mark.parametrize("size", [1, 4000])
def test_what_is_known_is_bounded(size: int) -> None:
    specs, most = RepeatedSpecs(), 0
    texts = [body(spec={"nodeName": str(number), "hostname": "x" * size}) for number in range(1000)]
    for text in texts:
        for _ in range(2):
            specs.keep("application/json", text, PodSpec())
        most = max(most, sum(len(known) + ENTRY for known in specs._known))
    assert specs.read("application/json", texts[-1]) is not None
    assert MOST // 2 < most <= MOST


async def posted(server: Server, text: bytes) -> tuple[int, Any]:
    answer = await server.ask("POST", PODS, text)
    assert isinstance(answer, Response)
    return answer.status, json.loads(await answer.read())


async def test_pods_of_one_template_are_alike(server: Server) -> None:
    """Whichever of them came first, and whatever a client asks to be told of."""

    def spec_of(pod: Any) -> Any:
        text = json.dumps(pod["spec"])
        for volume in pod["spec"]["volumes"]:
            text = text.replace(volume["name"], "volume")
        return json.loads(text)

    pods = [await posted(server, body(f"pod-{number}")) for number in range(5)]
    assert [status for status, _ in pods] == [201] * 5
    assert all(spec_of(pod) == spec_of(pods[0][1]) for _, pod in pods)
    assert [pod["metadata"]["labels"] for _, pod in pods] == [{"app": f"pod-{number}"} for number in range(5)]
    status, refused = await posted(server, body("Not a name"))
    assert (status, refused["reason"]) == (422, "Invalid")
    answer = await server.ask("POST", f"{PODS}?fieldValidation=Strict", body("strict", other=1))
    assert answer.status == 400
    answer = await server.ask("POST", f"{PODS}?fieldValidation=Strictest", body("strict"))
    assert answer.status == 422


WRONG: dict[str, dict[str, Any]] = {
    "a volume that is not there": {"containers": [{"volumeMounts": [{"name": "none", "mountPath": "/x"}]}]},
    "a place that is mounted twice": {
        "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/x"}, {"name": "data", "mountPath": "/x"}]}]
    },
    "a device that is no claim": {"containers": [{"volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]}]},
    "a request over its limit": {"containers": [{"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}}]},
    "a negative amount": {"initContainers": [{"resources": {"requests": {"cpu": "-1"}}}]},
    "a claim that is not declared": {"containers": [{"resources": {"claims": [{"name": "gpu"}]}}]},
    "a pod's amount under its containers'": {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}},
    "a node of no name": {"nodeName": "A B"},
    "a host of no name": {"hostname": "A B"},
    "a volume of two sources": {"volumes": [{"name": "data", "emptyDir": {}, "hostPath": {"path": "/", "type": ""}}]},
    "an account of no name": {"serviceAccountName": "A B"},
    "no such policy": {"dnsPolicy": "Other"},
    "an environment from a file that is not there": {
        "containers": [
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "none", "path": "x", "key": "k"}}}]}
        ]
    },
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_spec_like_one_that_passed_is_refused_for_what_is_its_own(wrong: str) -> None:
    """The rules for what differs between pods of a template are asked of each; all others of one."""
    right = whole(body())
    for _ in range(2):
        assert rules.validate_pod_spec(right.spec, "spec", DEFAULT_GATES, meta=right.metadata) == []
    document = json.loads(codec.encode(right))
    for name, value in WRONG[wrong].items():
        if name in ("containers", "initContainers"):
            document["spec"][name][0] |= value[0]
        else:
            document["spec"][name] = value
    made = codec.decode(json.dumps(document).encode(), Pod)
    told = rules.validate_pod_spec(made.spec, "spec", DEFAULT_GATES, meta=made.metadata)
    assert told
    fresh = rules._every_rule(made.spec, "spec", DEFAULT_GATES, tolerated=(), meta=made.metadata)
    assert told == fresh


def test_rules_that_depend_on_a_gate_are_asked_again_under_another() -> None:
    level = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
    made = whole(body(spec={**SPEC, "resources": level}))
    off = type(DEFAULT_GATES)({"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False})
    for _ in range(2):
        assert rules.validate_pod_spec(made.spec, "spec", off, meta=made.metadata) == []
    assert rules.validate_pod_spec(made.spec, "spec", DEFAULT_GATES, meta=made.metadata) != []


def test_an_amount_in_other_words_is_judged_anew() -> None:
    """A divisor has to be one of a list of texts."""

    def pod(divisor: str) -> Pod:
        ref = {"resourceFieldRef": {"resource": "limits.memory", "divisor": divisor}}
        app = {"name": "app", "image": "i", "env": [{"name": "MEMORY", "valueFrom": ref}]}
        return whole(body(spec={"containers": [app]}))

    def told(pod: Pod) -> list[str]:
        return [error.field for error in rules.validate_pod_spec(pod.spec, "spec", DEFAULT_GATES, meta=pod.metadata)]

    assert told(pod("1Ki")) == told(pod("1Ki")) == told(pod("1Ki")) == []
    assert told(pod("1024")) == ["spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor"]
