"""Passes of the VPA over many containers take time linear in them; `bench/vpa.py` measures how much.

Each figure is a proportion of two sizes on the same machine, so it says the same on a busy one.
"""

from collections.abc import Callable

import numpy as np
import pytest

from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from support.turns import growth

NOW, NUMBER, TIMES = 1_770_000_000.0, 1000, 10


def registered(number: int) -> ClusterState:
    state = ClusterState()
    for index in range(number):
        labels = {"app": f"a{index}"}
        state.set_vpa(VpaKey("ns", f"v{index}"), from_map(labels), None)
        state.set_pod(PodKey("ns", f"p{index}"), labels, ["c"], NOW)
    return state


def sampled(number: int) -> tuple[ClusterState, Callable[[], object]]:
    state = registered(number)
    slots, now = state.model.containers.slots.used.nonzero()[0], np.full(number, NOW)

    def sample() -> None:
        state.model.add_cpu(slots, np.full(number, 100.0), now)
        state.model.add_memory(slots, np.full(number, 1e8), now)

    return state, sample


def estimates(number: int) -> Callable[[], object]:
    state, sample = sampled(number)
    sample()

    def made() -> None:
        assert sum(part.stop - part.start for part, _ in state.estimates(state.members(state.vpas))) == number

    return made


def checkpoints(number: int) -> Callable[[], object]:
    state, sample = sampled(number)
    sample()

    def made() -> None:
        assert sum(len(parts) for _, parts in state.checkpoints(state.vpas, NOW + 3600)) == number

    return made


PASSES: dict[str, Callable[[int], Callable[[], object]]] = {
    "register": lambda number: lambda: registered(number),
    "samples": lambda number: sampled(number)[1],
    "estimates": estimates,
    "checkpoints": checkpoints,
}


@pytest.mark.row("V-125")
@pytest.mark.parametrize("name", PASSES)
def test_vpa_passes_over_many_containers_are_linear(name: str) -> None:
    assert growth(PASSES[name], NUMBER, times=TIMES) < TIMES**1.5
