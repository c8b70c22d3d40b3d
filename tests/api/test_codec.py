"""Bytes to objects and back."""

import gc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import json_name
from podfit.api.meta.codec import LARGE, convert, decode, decode_shared, encode, to_dict
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import Quantity


def test_null_means_not_given_at_every_depth() -> None:
    text = b'{"metadata":{"name":"p","labels":null},"spec":{"containers":[{"name":"c","ports":null}],"volumes":null}}'
    assert decode(text, Pod) == convert({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}, Pod)


def test_what_go_writes_empty_is_written_empty() -> None:
    written = to_dict(Pod())
    assert list(written)[:3] == ["kind", "apiVersion", "metadata"]
    assert written == {"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {}, "status": {}}
    assert to_dict(Event())["lastTimestamp"] is None
    assert to_dict(Node())["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("pod_ip", "podIP"),
        ("host_ips", "hostIPs"),
        ("qos_class", "qosClass"),
        ("set_hostname_as_fqdn", "setHostnameAsFQDN"),
    ],
)
def test_names(attribute: str, name: str) -> None:
    assert json_name(attribute) == name


@pytest.mark.parametrize(
    "text",
    [
        b'{"spec":{"containers":{}}}',
        b'{"spec":{"containers":[{"resources":{"requests":{"cpu":"x"}}}]}}',
        b'{"metadata":{"generation":"1"}}',
        b'{"metadata":{"creationTimestamp":"yesterday"}}',
        b'{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z\\n"}}',
        b"[]",
        b'{"spec":{"containers":[{"resources":{"requests":{"cpu":true}}}]}}',
    ],
)
def test_what_does_not_fit_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(text, Pod)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "x.y/z"]), st.integers(-(10**15), 10**15).map(Quantity)))
def test_resources_survive_the_wire(requests: dict[str, Quantity]) -> None:
    shape = {"spec": {"containers": [{"resources": {"requests": {name: str(q) for name, q in requests.items()}}}]}}
    pod = convert(shape, Pod)
    assert decode(encode(pod), Pod) == pod
    assert pod.spec.containers[0].resources.requests == requests


def test_the_same_bytes_are_one_object_for_everybody() -> None:
    data = encode(Pod(metadata=ObjectMeta(name="web")))
    assert decode_shared(data, Pod) is decode_shared(bytes(bytearray(data)), Pod)
    assert decode_shared(data, Pod) == decode(data, Pod)


def test_what_could_be_changed_is_not_shared() -> None:
    data = encode(Pod(metadata=ObjectMeta(name="web")))
    assert decode_shared(data, dict) is not decode_shared(data, dict)


def test_of_large_objects_the_last_two_are_shared() -> None:
    large = [encode(Pod(metadata=ObjectMeta(name=f"web-{n}", annotations={"a": "x" * LARGE}))) for n in range(3)]
    first, second = (decode_shared(data, Pod) for data in large[:2])
    assert (decode_shared(large[0], Pod), decode_shared(large[1], Pod)) == (first, second)
    assert decode_shared(large[0], Pod) is first
    decode_shared(large[1], Pod)
    decode_shared(large[2], Pod)
    assert decode_shared(large[0], Pod) is not first


def test_the_garbage_collector_passes_objects_over() -> None:
    """What is decoded has no cycles: the pods of a large cluster would make each look for some take 100 ms."""
    pod = decode(b'{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}', Pod)
    assert not any(gc.is_tracked(part) for part in (pod, pod.metadata, pod.spec, pod.spec.containers[0]))


def test_an_object_is_shared_though_many_others_are_decoded_in_between() -> None:
    """A busy cluster's informers hear of the same pod hundreds of events apart, and keep one copy of it."""
    pod, others = encode(Pod(metadata=ObjectMeta(name="shared"))), range(1000)
    first = decode_shared(pod, Pod)
    for number in others:
        decode_shared(encode(Event(metadata=ObjectMeta(name=f"e{number}"))), Event)
    assert decode_shared(pod, Pod) is first
