"""The tests of tests/kubelet/test_spare_on_containerd.py once more, on cgroup v2."""

import pytest

from kubelet.test_spare_on_containerd import *  # noqa: F403 - every test of the module

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]
