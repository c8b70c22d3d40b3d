"""Limits in a Windows runtime's words and back (R-182)."""

import pytest

from podfit.decide.resize.reported_status import Enforced
from podfit.decide.resize.windows import cpu_maximum, enforced, memory_limit
from support.pods import needs


@pytest.mark.row("R-182")
@pytest.mark.parametrize(
    ("limit", "cpus", "maximum", "read_back"),
    [("500m", 4, 1250, 500), ("1", 2, 5000, 1000), ("4", 4, 10_000, 4000), ("9", 4, 10_000, 4000), ("1m", 64, 1, 6)],
)
def test_cpu_is_a_share_of_the_machine(limit: str, cpus: int, maximum: int, read_back: int) -> None:
    resources = needs(None, {"cpu": limit, "memory": "64Mi"})
    assert cpu_maximum(resources, cpus) == maximum
    assert enforced(maximum=maximum, memory=memory_limit(resources), cpus=cpus) == Enforced(
        cpu_limit=read_back, memory_limit=64 << 20
    )


@pytest.mark.row("R-182")
def test_no_limit_stays_no_limit() -> None:
    assert (cpu_maximum(needs(), 4), memory_limit(needs())) == (0, 0)
    assert enforced(maximum=0, memory=0, cpus=4) == Enforced()
