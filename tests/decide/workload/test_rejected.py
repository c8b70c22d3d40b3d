"""The pause of a set whose pods their node rejects."""

from datetime import timedelta

import pytest

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.times import format_time
from podfit.decide.workload.rejected import pause
from support.clock import EPOCH


def pods(number: int, seconds_ago: float = 0.0, *, phase: str = "Failed", ran: bool = False) -> list[Pod]:
    made = format_time(EPOCH - timedelta(seconds=seconds_ago))
    status = PodStatus(phase=phase, container_statuses=(ContainerStatus(name="c"),) if ran else ())
    return [Pod(metadata=ObjectMeta(name=f"p{name}", creation_timestamp=made), status=status) for name in range(number)]


CASES = {
    "none was": ([], 1, 0.0),
    "the first rounds": (pods(4), 1, 0.0),
    "the fifth": (pods(5), 1, 1.0),
    "the sixth": (pods(6), 1, 2.0),
    "half of it is over": (pods(6, 1.0), 1, 1.0),
    "all of it is over": (pods(6, 3.0), 1, 0.0),
    "many": (pods(1000), 1, 60.0),
    "as many as four rounds of ten": (pods(49), 10, 0.0),
    "five rounds of ten": (pods(50), 10, 1.0),
    "long ago": (pods(1000, 601.0), 1, 0.0),
    "they ran": (pods(1000, ran=True), 1, 0.0),
    "they wait": (pods(1000, phase="Pending"), 1, 0.0),
    "no replicas": (pods(1000), 0, 60.0),
}


@pytest.mark.parametrize(("found", "replicas", "seconds"), CASES.values(), ids=CASES.keys())
def test_the_pause_doubles_with_each_round(found: list[Pod], replicas: int, seconds: float) -> None:
    assert pause(found, replicas, EPOCH) == seconds
