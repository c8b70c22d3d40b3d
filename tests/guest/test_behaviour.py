"""The long form on cgroup v2: the recorded resizes of tests/kubelet/test_behaviour_on_containerd.py once more."""

import pytest

from kubelet.test_behaviour_on_containerd import *  # noqa: F403 - every test of the module

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.campaign]
