"""Which credentials are for which image."""

import base64
import json
from typing import Any

import pytest

from podfit.decide.pod.pull_credentials import Credential, credentials

ALICE = {"username": "alice", "password": "a"}
BOB = {"auth": base64.b64encode(b"bob:b:c").decode()}


def secret(**auths: Any) -> dict[str, bytes]:
    return {".dockerconfigjson": json.dumps({"auths": auths}).encode()}


@pytest.mark.parametrize(
    ("image", "key", "matches"),
    [
        ("registry:5000/team/app:1", "registry:5000", True),
        ("registry:5000/team/app:1", "https://registry:5000/v2/", True),
        ("registry:5000/team/app:1", "registry:5000/team", True),
        ("registry:5000/team/app@sha256:" + "a" * 64, "registry:5000/team/app", True),
        ("registry:5000/teams/app", "registry:5000/team", False),
        ("registry:5000/app", "registry", False),
        ("a.registry.io/app", "*.registry.io", True),
        ("a.b.registry.io/app", "*.registry.io", False),
        ("busybox:1", "https://index.docker.io/v1/", True),
        ("docker.io/library/busybox", "docker.io", True),
        ("localhost/app:1", "localhost", True),
        ("team/app", "registry:5000", False),
    ],
)
def test_places(image: str, key: str, matches: bool) -> None:
    assert bool(credentials(image, [secret(**{key: ALICE})])) is matches


def test_the_longest_key_comes_first_and_none_twice() -> None:
    secrets = [secret(**{"r.io": ALICE}), secret(**{"r.io/team": BOB, "r.io/other": ALICE, "https://r.io": ALICE})]
    assert credentials("r.io/team/app", secrets) == (Credential("bob", "b:c"), Credential("alice", "a"))


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {".dockerconfigjson": b"{"},
        {".dockerconfigjson": b"[]"},
        {".dockerconfigjson": b'{"auths": {"r.io": 1}}'},
        {".dockerconfigjson": b'{"auths": {"r.io": {"auth": "?"}}}'},
        {".dockercfg": b'{"r.io": {}}'},
    ],
)
def test_what_is_no_such_secret_has_none(broken: dict[str, bytes]) -> None:
    assert credentials("r.io/app", [broken]) == ()


def test_the_older_form() -> None:
    assert credentials("r.io/app", [{".dockercfg": json.dumps({"r.io": ALICE}).encode()}]) == (
        Credential("alice", "a"),
    )
