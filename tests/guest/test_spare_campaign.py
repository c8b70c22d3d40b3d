"""The paired runs of tests/kubelet/test_spare_on_containerd.py once more, on cgroup v2."""

import pytest

from kubelet.test_spare_on_containerd import (
    load,
    node,
    test_a_server_keeps_its_latency_beside_borrowers,
    test_a_spike_has_its_cpu_back,
    test_a_spike_has_its_memory_back,
)

__all__ = [
    "load",
    "node",
    "test_a_server_keeps_its_latency_beside_borrowers",
    "test_a_spike_has_its_cpu_back",
    "test_a_spike_has_its_memory_back",
]

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.campaign, pytest.mark.asyncio(loop_scope="module")]
