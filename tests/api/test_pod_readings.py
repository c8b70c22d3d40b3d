"""What a pod's phase, sidecars and containers are is read in one place, by everybody."""

import re
from itertools import product
from pathlib import Path

import msgspec
import pytest

from podfit.api.core.v1.pods.phase import has_ended, is_active, is_terminating
from podfit.api.core.v1.pods.types import Pod

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "podfit"
PODS = SOURCE / "api" / "core" / "v1" / "pods"
READINGS = {
    r"\"Succeeded\", \"Failed\"": PODS / "phase.py",
    r"\w\.restart_policy == \"Always\"$": PODS / "aggregate.py",
    r"\(\*[\w.]+\.init_containers, \*[\w.]+\.containers\)": PODS / "aggregate.py",
}


@pytest.mark.parametrize(("reading", "place"), [*READINGS.items()], ids=lambda value: getattr(value, "name", None))
def test_nobody_reads_it_again(reading: str, place: Path) -> None:
    pattern = re.compile(reading, re.MULTILINE)
    assert [path for path in SOURCE.rglob("*.py") if pattern.search(path.read_text())] == [place]


@pytest.mark.parametrize(
    ("phase", "going"), [*product(("", "Pending", "Running", "Succeeded", "Failed", "Unknown"), (0, 1))]
)
def test_a_pod_is_active_going_or_ended(phase: str, going: int) -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    pod = msgspec.convert({"metadata": metadata, "status": {"phase": phase}}, Pod)
    ended = phase in ("Succeeded", "Failed")
    assert (has_ended(pod), is_active(pod), is_terminating(pod)) == (
        ended,
        not ended and not going,
        not ended and bool(going),
    )
