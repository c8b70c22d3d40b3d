"""The short tests of tests/kubelet/test_bursts_on_containerd.py once more, on cgroup v2."""

import pytest

from kubelet.test_bursts_on_containerd import (  # noqa: F401
    node,
    test_a_load_that_stays_as_it_is_is_left_alone,
    test_cpu_that_is_wanted_is_given,
    test_memory_that_grows_meets_no_limit,
    test_the_spec_follows_and_a_kubelet_that_died_keeps_what_was_moved,
)

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]
