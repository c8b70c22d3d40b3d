"""docs/compatibility.md says of each field of a pod what becomes of it."""

import re
from pathlib import Path

import pytest

from podfit.api.core.v1.pods.containers import EphemeralContainer
from podfit.api.core.v1.pods.security import PodSecurityContext, SecurityContext
from podfit.api.core.v1.pods.types import PodSpec

PAGE = Path(__file__).parents[2] / "docs/compatibility.md"


@pytest.mark.parametrize(
    ("table", "types"),
    [
        ("of the pod", (PodSpec,)),
        ("of a container", (EphemeralContainer,)),
        ("of a security context", (PodSecurityContext, SecurityContext)),
    ],
)
def test_every_field_is_told(table: str, types: tuple[type, ...]) -> None:
    text = PAGE.read_text().partition("## What a pod asks of its node")[2]
    rows = re.split(r"\n\n", text.partition(f"| {table}")[2])[0].splitlines()[2:]
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    declared = {name for struct in types for name in struct.__struct_encode_fields__}  # type: ignore[attr-defined]  # Structs
    assert told == declared
