"""Environment variables: sources, order, expansion."""

import pytest

from kubelet.harness import IDENTITY
from kubelet.node_api import NodeApi
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.quantity import Quantity
from podfit.decide.pod.environment import expand
from podfit.kubelet.sources.downward import Unsupported
from podfit.kubelet.sources.environment import words
from podfit.kubelet.sources.lookup import RECENT_SECONDS, Lookup, Missing
from support.clock import FakeClock

ALLOCATABLE = {"cpu": Quantity.parse("4"), "memory": Quantity.parse("4Gi")}


@pytest.fixture
async def lookup() -> Lookup:
    api = NodeApi()
    api.put("configmaps", {"metadata": {"name": "cm", "namespace": "ns"}, "data": {"a": "1", "b": "2"}})
    api.put("secrets", {"metadata": {"name": "s", "namespace": "ns"}, "data": {"k": "c2VjcmV0"}})
    return Lookup(Client(Local(api, IDENTITY)), FakeClock())


async def test_what_was_read_for_another_pod_shortly_before_is_taken_where_that_will_do() -> None:
    api, clock = NodeApi(), FakeClock()
    lookup = Lookup(Client(Local(api, IDENTITY)), clock)
    for value, seconds, kept, newest in (("1", 0, "1", "1"), ("2", RECENT_SECONDS, "1", "2"), ("3", 31, "3", "3")):
        api.put("configmaps", {"metadata": {"name": "cm", "namespace": "ns"}, "data": {"a": value}})
        await clock.advance(seconds)
        assert await lookup.read("configmap", "ns", "cm", recent=True) == {"a": kept.encode()}
        assert await lookup.read("configmap", "ns", "cm") == {"a": newest.encode()}
    api.remove("configmaps", "cm", "ns")
    with pytest.raises(Missing):
        await lookup.read("configmap", "ns", "cm")


def pod_with(env: list[object], env_from: list[object] | None = None) -> Pod:
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "100Mi"}}
    return codec.convert(
        {
            "metadata": {"name": "web", "namespace": "ns", "uid": "u", "labels": {"app": "x", "tier": 'a"b'}},
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": "c1", "env": env, "envFrom": env_from or [], "resources": resources}],
            },
            "status": {"podIP": "10.0.0.1"},
        },
        Pod,
    )


async def resolve(pod: Pod, lookup: Lookup) -> dict[str, str]:
    return dict((await words(pod, pod.spec.containers[0], lookup=lookup, allocatable=ALLOCATABLE)).environment)


def field(name: str, path: str) -> dict[str, object]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(name: str, which: str, divisor: str = "0") -> dict[str, object]:
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": which, "divisor": divisor}}}


async def test_later_definitions_win_and_earlier_ones_can_be_used(lookup: Lookup) -> None:
    pod = pod_with(
        [{"name": "a", "value": "own"}, {"name": "C", "value": "$(a)-$(P_b) $$(a) $(nope) $"}],
        [
            {"configMapRef": {"name": "cm"}},
            {"prefix": "P_", "configMapRef": {"name": "cm"}},
            {"secretRef": {"name": "s"}},
        ],
    )
    assert await resolve(pod, lookup) == {
        "a": "own",
        "b": "2",
        "P_a": "1",
        "P_b": "2",
        "k": "secret",
        "C": "own-2 $(a) $(nope) $",
    }


async def test_services_can_be_used_and_overridden(lookup: Lookup) -> None:
    pod = pod_with([{"name": "URL", "value": "https://$(HOST):$(PORT)"}, {"name": "PORT", "value": "own"}])
    started_with = await words(
        pod, pod.spec.containers[0], lookup=lookup, allocatable=ALLOCATABLE, services={"HOST": "h", "PORT": "1"}
    )
    assert started_with.environment == {"HOST": "h", "PORT": "own", "URL": "https://h:1"}


async def test_the_pod_about_itself(lookup: Lookup) -> None:
    pod = pod_with(
        [
            field("N", "metadata.name"),
            field("L", "metadata.labels['app']"),
            field("ALL", "metadata.labels"),
            field("IP", "status.podIP"),
            field("NODE", "spec.nodeName"),
            resource("R", "requests.cpu"),
            resource("RM", "requests.cpu", "1m"),
            resource("LM", "limits.memory", "1Mi"),
            resource("LC", "limits.cpu"),
        ]
    )
    assert await resolve(pod, lookup) == {
        "N": "web",
        "L": "x",
        "ALL": 'app="x"\ntier="a\\"b"',
        "IP": "10.0.0.1",
        "NODE": "n1",
        "R": "1",
        "RM": "250",
        "LM": "100",
        "LC": "4",
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "cm", "key": "zz"}}, "couldn't find key zz in ConfigMap ns/cm"),
        ({"secretKeyRef": {"name": "s", "key": "zz"}}, "couldn't find key zz in Secret ns/s"),
        ({"secretKeyRef": {"name": "none", "key": "zz"}}, 'secret "none" not found'),
    ],
)
async def test_what_is_missing_is_named(lookup: Lookup, source: dict[str, object], message: str) -> None:
    with pytest.raises(Missing, match=message):
        await resolve(pod_with([{"name": "A", "valueFrom": source}]), lookup)


async def test_optional_sources_may_be_missing(lookup: Lookup) -> None:
    ref = {"name": "none", "key": "k", "optional": True}
    pod = pod_with(
        [{"name": "A", "valueFrom": {"configMapKeyRef": ref}}], [{"secretRef": {"name": "none", "optional": True}}]
    )
    assert await resolve(pod, lookup) == {}


async def test_a_field_that_cannot_be_read_is_refused(lookup: Lookup) -> None:
    with pytest.raises(Unsupported, match=r"unsupported fieldPath: spec\.foo"):
        await resolve(pod_with([field("A", "spec.foo")]), lookup)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("$(A)", "1"), ("$(A)$(A)", "11"), ("$$(A)", "$(A)"), ("$$$(A)", "$1"), ("$(", "$("), ("$(B", "$(B"), ("$", "$")],
)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected
