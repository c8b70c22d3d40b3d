"""What a client is told of a document that is not an object of its kind: upstream's words, from our annotations."""

from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import Secret
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.request.bodies import typed
from podfit.apiserver.request.decoder_messages import unrecognized
from podfit.core.errors import ApiError

START = "json: cannot unmarshal "


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"spec": {"containers": [{"command": [{}]}]}},
            "object into Go struct field Container.spec.containers.command of type string",
        ),
        (
            {"spec": {"containers": [{"command": "x"}]}},
            "string into Go struct field Container.spec.containers.command of type []string",
        ),
        ({"spec": {"containers": ["x"]}}, "string into Go struct field PodSpec.spec.containers of type v1.Container"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"spec": {"priority": "x"}}, "string into Go struct field PodSpec.spec.priority of type int32"),
        ({"spec": {"priority": 1.5}}, "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        (
            {"spec": {"terminationGracePeriodSeconds": "x"}},
            "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            {"spec": {"containers": [{"resources": {"limits": 5}}]}},
            "number into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 1.5}}}]}},
            "number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32",
        ),
        ({"spec": {"dnsPolicy": 3}}, "number into Go struct field PodSpec.spec.dnsPolicy of type v1.DNSPolicy"),
        ({"metadata": {"uid": []}}, "array into Go struct field ObjectMeta.metadata.uid of type types.UID"),
        (
            {"metadata": {"creationTimestamp": 5}},
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            {"spec": {"hostNetwork": 1, "containers": {}, "priority": 2**40}},
            "number into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"spec": {"hostNetwork": 1, "containers": [{"lifecycle": {"preStop": {"tcpSocket": {"port": []}}}}]}},
            "array into Go struct field TCPSocketAction.spec.containers.lifecycle.preStop.tcpSocket.port of type int32",
        ),
        (
            {"spec": {"priority": 2**40}},
            "number 1099511627776 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"metadata": {"finalizers": {}}},
            "object into Go struct field ObjectMeta.metadata.finalizers of type []string",
        ),
    ],
)
def test_the_decoder_names_struct_path_and_type(document: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError) as refused:
        typed(document, Pod)
    said = refused.value.message.removeprefix('Pod in version "v1" cannot be handled as a Pod: ')
    assert said == START + text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"data": {"a": "abc"}}, "illegal base64 data at input byte 0"),
        ({"data": {"a": "abcd!"}}, "illegal base64 data at input byte 4"),
        ({"data": {"a": "ab="}}, "illegal base64 data at input byte 3"),
        ({"data": {"a": "ab=c"}}, "illegal base64 data at input byte 2"),
        ({"data": {"a": "="}}, "illegal base64 data at input byte 0"),
        ({"data": {"a": 5}}, "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"),
        ({"data": "x"}, "json: cannot unmarshal string into Go struct field Secret.data of type map[string][]uint8"),
        ({"type": {}}, "json: cannot unmarshal object into Go struct field Secret.type of type v1.SecretType"),
        (
            {"metadata": {"creationTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        ({"metadata": {"creationTimestamp": "2026-02-30T00:00:00Z"}}, "day out of range"),
        ({"metadata": {"creationTimestamp": "2026-13-01T00:00:00Z"}}, "month out of range"),
        ({"immutable": 1, "metadata": {"creationTimestamp": ""}}, 'cannot parse "" as "2006"'),
    ],
)
def test_texts_that_are_read_are_told_in_the_words_of_their_readers(document: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError) as refused:
        typed(document, Secret)
    assert refused.value.message.endswith(text)


@pytest.mark.parametrize(
    ("given", "back"),
    [
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.999Z", "2026-01-01T00:00:00Z"),
        ("2025-12-31T23:30:00-00:30", "2026-01-01T00:00:00Z"),
        ("2026-01-01T0:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_times_come_back_in_utc(given: str, back: str) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": given}]}
    assert typed({"status": status}, Pod).status.conditions[0].last_transition_time == back


@pytest.mark.parametrize(
    ("given", "back"),
    [
        ("2026-01-01T01:00:00.000001+01:00", "2026-01-01T00:00:00.000001Z"),
        ("2026-01-01T00:00:00Z", 'cannot parse "Z" as ".000000"'),
        ("2026-01-01T00:00:00.1Z", 'cannot parse ".1Z" as ".000000"'),
        ("2026-01-01T00:00:00.1234567Z", 'cannot parse "7Z" as "Z07:00"'),
    ],
)
def test_times_of_leases_have_six_digits(given: str, back: str) -> None:
    try:
        found = typed({"spec": {"renewTime": given}}, Lease).spec.renew_time
    except ApiError as error:
        found = error.message
    assert found is not None
    assert found.endswith(back)


def test_base64_may_be_folded() -> None:
    assert typed({"data": {"a": "YWJj\nYWJj\r\n"}}, Secret).data == {"a": b"abcabc"}


def test_a_field_of_several_types_is_a_number() -> None:
    with pytest.raises(ApiError, match=r"RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32"):
        typed({"spec": {"strategy": {"rollingUpdate": {"maxSurge": {}}}}}, Deployment)


def test_a_long_body_is_quoted_by_its_beginning() -> None:
    assert unrecognized("why", b"{" + b"x" * 40, "Pod").endswith(f"why ({{{'x' * 29}...)".replace("...)", " ...)"))
    assert unrecognized("why", b"\xff" * 3_000_000, "Pod").endswith(f"why ({'ff' * 30} ...)")
