"""The short form of tests/kubelet/test_spare_on_containerd.py once more, on cgroup v2."""

import pytest

from kubelet.test_spare_on_containerd import (
    load,
    node,
    test_forks_without_end_take_nothing_of_the_owners,
    test_owners_have_cpu_and_memory_back,
)

__all__ = ["load", "node", "test_forks_without_end_take_nothing_of_the_owners", "test_owners_have_cpu_and_memory_back"]

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]
