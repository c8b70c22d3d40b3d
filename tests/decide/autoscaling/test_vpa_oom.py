"""Which containers ran out of memory, as recorded."""

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.times import format_time
from podfit.decide.autoscaling.oom import evicted, ran_out
from support.golden import Case
from support.vpa_golden import replay


@pytest.mark.row("V-042", "V-043")
@replay("oom_observer")
def test_vpa_out_of_memory_is_observed_as_recorded(case: Case) -> None:
    if "event" in case:
        found = list(evicted(convert(case["event"], Event)))
    else:
        found = list(ran_out(convert(case["old_pod"], Pod), convert(case["new_pod"], Pod)))
    told = [
        {
            "namespace": memory.namespace,
            "pod": memory.pod,
            "container": memory.container,
            "memory_bytes": memory.memory,
            "timestamp": format_time(memory.time),
        }
        for memory in found
    ]
    assert told == case["observed"]
