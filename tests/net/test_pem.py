"""PEM that a client made to be slow."""

from collections.abc import Callable

import pytest

from podfit.net.certificate_signing import certificate_problem, request_problem
from support.turns import cpu_ms

SLOW: dict[str, Callable[[], bytes]] = {
    "beginnings": lambda: b"-----BEGIN CERTIFICATE REQUEST-----\n" * 60_000,
    "ends of others": lambda: b"-----BEGIN A-----\n-----END B-----\n" * 60_000,
    "a beginning without end": lambda: b"-----BEGIN " * 200_000 + b"-----END ",
    "spaces": lambda: b"-----BEGIN A-----" + b" " * 2_000_000 + b"-----END B-----",
    "many names": lambda: b"".join(b"-----BEGIN %d-----\n" % number for number in range(100_000)) + b"-----END x-----",
}
"""Made when they are needed: a session keeps its parameters."""


@pytest.mark.parametrize("name", SLOW)
def test_blocks_without_their_end(name: str) -> None:
    pem = SLOW[name]()
    assert cpu_ms(lambda: request_problem(pem)) < 100
    assert cpu_ms(lambda: certificate_problem(pem)) < 100
    assert request_problem(pem) == "PEM block type must be CERTIFICATE REQUEST"
    assert certificate_problem(pem) == "must contain at least one CERTIFICATE PEM block"
