"""PEM that a client made to be slow."""

import pytest

from podfit.net.certificate_signing import certificate_problem, request_problem
from support.turns import cpu_ms


@pytest.mark.parametrize(
    "pem",
    [
        b"-----BEGIN CERTIFICATE REQUEST-----\n" * 60_000,
        b"-----BEGIN A-----\n-----END B-----\n" * 60_000,
        b"-----BEGIN " * 200_000 + b"-----END ",
        b"-----BEGIN A-----" + b" " * 2_000_000 + b"-----END B-----",
        b"".join(b"-----BEGIN %d-----\n" % number for number in range(100_000)) + b"-----END x-----",
    ],
)
def test_blocks_without_their_end(pem: bytes) -> None:
    assert cpu_ms(lambda: request_problem(pem)) < 100
    assert cpu_ms(lambda: certificate_problem(pem)) < 100
    assert request_problem(pem) == "PEM block type must be CERTIFICATE REQUEST"
    assert certificate_problem(pem) == "must contain at least one CERTIFICATE PEM block"
