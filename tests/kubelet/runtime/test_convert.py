"""Resources through CRI's messages and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.lifecycle.facts import LinuxResources, WindowsResources
from podfit.kubelet.runtime.cri import from_cri, to_cri
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb

NUMBERS = st.integers(-1, 1 << 62)
LINUX = st.builds(
    LinuxResources,
    cpu_shares=NUMBERS,
    cpu_quota=NUMBERS,
    cpu_period=NUMBERS,
    memory_limit=NUMBERS,
    oom_score_adj=NUMBERS,
    cpuset_cpus=st.sampled_from(["", "0-3"]),
    cpuset_mems=st.sampled_from(["", "0"]),
    hugepages=st.dictionaries(st.sampled_from(["2MB", "1GB"]), st.integers(0, 1 << 62)),
    unified=st.dictionaries(st.sampled_from(["memory.high"]), st.sampled_from(["max"])),
    swap_limit=NUMBERS,
)
WINDOWS = st.builds(
    WindowsResources,
    cpu_shares=NUMBERS,
    cpu_count=NUMBERS,
    cpu_maximum=NUMBERS,
    memory_limit=NUMBERS,
    rootfs_size=NUMBERS,
)


@given(LINUX)
def test_linux_resources_survive_the_wire(resources: LinuxResources) -> None:
    sent = pb.UpdateContainerResourcesRequest.FromString(to_cri.update_request("c", resources).SerializeToString())
    assert (sent.container_id, sent.HasField("windows")) == ("c", False)
    status = from_cri.container_status(pb.ContainerStatus(resources=pb.ContainerResources(linux=sent.linux)))
    assert (status.resources, status.windows) == (resources, None)


@pytest.mark.row("R-182")
@given(WINDOWS)
def test_windows_resources_survive_the_wire(resources: WindowsResources) -> None:
    sent = pb.UpdateContainerResourcesRequest.FromString(to_cri.update_request("c", resources).SerializeToString())
    assert (sent.container_id, sent.HasField("linux")) == ("c", False)
    status = from_cri.container_status(pb.ContainerStatus(resources=pb.ContainerResources(windows=sent.windows)))
    assert (status.resources, status.windows) == (None, resources)


@pytest.mark.row("R-148")
def test_a_runtime_that_tells_nothing_of_resources() -> None:
    status = from_cri.container_status(pb.ContainerStatus())
    assert (status.resources, status.windows) == (None, None)
