"""Passes over 10,000 containers: far from their figures only when something is quadratic (`bench/vpa.py` measures)."""

import time

import numpy as np
import pytest

from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState, PodKey, VpaKey

NOW, NUMBER = 1_770_000_000.0, 10_000
GOALS = {"register": 0.5, "samples": 0.001, "estimates": 0.02, "checkpoints": 1.0}
"""Seconds of CPU."""
SLACK = 20


@pytest.mark.row("V-125")
def test_vpa_passes_over_many_containers_are_linear() -> None:
    began, took, state = time.process_time(), dict[str, float](), ClusterState()

    def done(name: str) -> None:
        nonlocal began
        took[name], began = time.process_time() - began, time.process_time()

    for number in range(NUMBER):
        labels = {"app": f"a{number}"}
        state.set_vpa(VpaKey("ns", f"v{number}"), from_map(labels), None)
        state.set_pod(PodKey("ns", f"p{number}"), labels, ["c"], NOW)
    done("register")
    slots = state.model.containers.slots.used.nonzero()[0]
    state.model.add_cpu(slots, np.full(NUMBER, 100.0), np.full(NUMBER, NOW))
    state.model.add_memory(slots, np.full(NUMBER, 1e8), np.full(NUMBER, NOW))
    done("samples")
    keys = state.vpas
    assert sum(part.stop - part.start for part, _ in state.estimates(state.members(keys))) == NUMBER
    done("estimates")
    assert sum(len(made) for _, made in state.checkpoints(keys, NOW + 3600)) == NUMBER
    done("checkpoints")
    assert {name: took[name] < goal * SLACK for name, goal in GOALS.items()} == dict.fromkeys(GOALS, True), took
