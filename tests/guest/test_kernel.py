"""The cgroup tree against a kernel of cgroup v2: the tests of tests/kubelet/cgroup/test_kernel.py once more."""

import pytest

from kubelet.cgroup.test_kernel import *  # noqa: F403 - every test of the module

pytestmark = [pytest.mark.guest, pytest.mark.node]
