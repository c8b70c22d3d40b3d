"""The rules of the cluster's signers."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.meta.codec import convert
from podfit.decide.certificates import (
    ANY_NODE,
    CLIENT,
    NODE_CLIENT,
    NODE_SERVING,
    SELF_NODE,
    RequestedNames,
    objection,
    out_of_date,
    recognized,
    times,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NODE = RequestedNames("system:node:n", ("system:nodes",))
SERVING = RequestedNames("system:node:n", ("system:nodes",), dns=("n",))
BAD_NAME = "a name of the subject is empty, begins or ends with a blank, or cannot be printed:"
APPROVED = ("Approved", "2026-01-01T05:00:00Z")
SIGN, KEY, USE, SERVE = "digital signature", "key encipherment", "client auth", "server auth"


@pytest.mark.parametrize(
    ("signer", "asked", "usages", "problem"),
    [
        (CLIENT, RequestedNames("jane", ("dev",)), (USE,), ""),
        (CLIENT, RequestedNames("jane"), (SIGN, KEY, USE), ""),
        (CLIENT, RequestedNames("jane"), (SIGN,), "missing required usage for client certificate: client auth"),
        (CLIENT, RequestedNames("jane"), (USE, SERVE), "invalid usage for client certificate: server auth"),
        (NODE_CLIENT, NODE, (SIGN, USE), ""),
        (NODE_CLIENT, NODE, (SIGN, KEY, USE), ""),
        (NODE_CLIENT, NODE, (USE,), "usages did not match [client auth digital signature key encipherment]"),
        (NODE_CLIENT, RequestedNames("system:node:n"), (SIGN, USE), "subject organization is not system:nodes"),
        (
            NODE_CLIENT,
            RequestedNames("n", ("system:nodes",)),
            (SIGN, USE),
            "subject common name does not begin with system:node:",
        ),
        (NODE_CLIENT, SERVING, (SIGN, USE), "DNS subjectAltNames are not allowed"),
        (CLIENT, RequestedNames(organizations=("dev",)), (USE,), "the subject has no common name"),
        (CLIENT, RequestedNames("jane ", ("dev",)), (USE,), f"{BAD_NAME} 'jane '"),
        (CLIENT, RequestedNames("jane", ("dev\nX",)), (USE,), f"{BAD_NAME} 'dev\\nX'"),
        (CLIENT, RequestedNames("\ufeffjane"), (USE,), f"{BAD_NAME} '\\ufeffjane'"),
        (CLIENT, RequestedNames("jane", ("",)), (USE,), f"{BAD_NAME} ''"),
        (CLIENT, RequestedNames("jane", unread="more than is read"), (USE,), "more than is read"),
        (CLIENT, RequestedNames("jane", problem="a bad signature"), (USE,), "a bad signature"),
        (NODE_SERVING, SERVING, (SIGN, SERVE), ""),
        (NODE_SERVING, NODE, (SIGN, SERVE), "DNS or IP subjectAltName is required"),
        (NODE_SERVING, SERVING, (SIGN, USE), "usages did not match [digital signature key encipherment server auth]"),
    ],
)
def test_what_a_signer_signs(signer: str, asked: RequestedNames, usages: tuple[str, ...], problem: str) -> None:
    assert objection(signer, asked, usages) == problem


def a_request(*conditions: tuple[str, str], user: str = "", issued: bool = False) -> CertificateSigningRequest:
    listed = [{"type": kind, "status": "True", "lastUpdateTime": when} for kind, when in conditions]
    status = {"conditions": listed} | ({"certificate": "eA=="} if issued else {})
    spec = {"signerName": NODE_CLIENT, "usages": [SIGN, USE], "username": user}
    meta = {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return convert({"metadata": meta, "spec": spec, "status": status}, CertificateSigningRequest)


def test_a_node_is_recognized_as_itself_or_as_any() -> None:
    assert recognized(a_request(user="system:node:n"), NODE) == (SELF_NODE, ANY_NODE)
    assert recognized(a_request(user="someone"), NODE) == (ANY_NODE,)
    assert recognized(a_request(user="system:node:n"), SERVING) == ()


@given(seconds=st.none() | st.integers(600, 10**9), left=st.integers(0, 4000))
def test_a_certificate_lasts_as_long_as_asked_and_no_longer_than_the_signer(seconds: int | None, left: int) -> None:
    authority = NOW + timedelta(days=left)
    begins, ends = times(NOW, seconds, authority)
    wanted = timedelta(seconds=seconds) if seconds is not None else timedelta(days=365)
    assert begins == NOW - timedelta(minutes=5)
    assert ends <= min(NOW + wanted, NOW + timedelta(days=365), authority)
    if authority > NOW + timedelta(days=366) and wanted < timedelta(days=365):
        assert NOW + wanted - ends in (timedelta(0), timedelta(minutes=5))


@pytest.mark.parametrize(
    ("request_", "ends", "due"),
    [
        (a_request(), None, "2026-01-02T00:00:00"),
        (a_request(("Denied", "2026-01-01T05:00:00Z")), None, "2026-01-01T06:00:00"),
        (a_request(APPROVED), None, "2026-01-02T05:00:00"),
        (a_request(APPROVED, ("Failed", "2026-01-01T05:00:00Z")), None, "2026-01-01T06:00:00"),
        (a_request(APPROVED, issued=True), None, "2026-01-01T06:00:00"),
        (a_request(APPROVED, issued=True), NOW - timedelta(hours=20), "2026-01-01T04:00:00"),
    ],
)
def test_what_is_answered_goes_sooner_than_what_nobody_answers(
    request_: CertificateSigningRequest, ends: datetime | None, due: str
) -> None:
    assert out_of_date(request_, NOW, ends) == datetime.fromisoformat(due + "+00:00")
