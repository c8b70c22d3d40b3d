"""A KubeletConfiguration: what it says is done, and what would not be done is refused by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from podfit.core.features import FeatureGates
from podfit.core.options import document
from podfit.decide.node.options import CpuPolicy, KubeletOptions, MemoryPolicy, MemoryReservation, SwapBehavior
from podfit.decide.node.shutdown import ShutdownGroup
from podfit.process.config_file import MOST_BYTES, read
from podfit.process.errors import UsageError
from podfit.process.node.options import KubeletProcessOptions

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def config(tmp_path: Path, flags: Mapping[str, Any] | None = None, **fields: Any) -> KubeletProcessOptions:
    path = tmp_path / "kubelet.yaml"
    path.write_text(yaml.safe_dump(HEAD | fields))
    return read(KubeletProcessOptions, flags, path)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert config(tmp_path) == KubeletProcessOptions()


def test_upstreams_fields(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        address="10.0.0.1",
        port=10251,
        readOnlyPort=0,
        staticPodPath="/etc/manifests",
        containerRuntimeEndpoint="unix:///run/containerd/containerd.sock",
        serverTLSBootstrap=True,
        rotateCertificates=True,
        authentication={
            "x509": {"clientCAFile": "/ca.crt"},
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
        },
        authorization={"mode": "Webhook"},
        evictionHard={"memory.available": "100Mi", "nodefs.available": "10%"},
        evictionPressureTransitionPeriod="1m30s",
        cgroupRoot="/pods/",
        shutdownGracePeriod="30s",
        shutdownGracePeriodCriticalPods="10s",
        cpuManagerPolicy="static",
        reservedSystemCPUs="0-1",
        memoryManagerPolicy="Static",
        reservedMemory=[{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        memorySwap={"swapBehavior": "LimitedSwap"},
        imageGCHighThresholdPercent=70,
        imageGCLowThresholdPercent=60,
        imageMinimumGCAge="1m30s",
        imageMaximumGCAge="24h",
        memoryThrottlingFactor=0.8,
        memoryReservationPolicy="TieredReservation",
        featureGates={"MemoryQoS": True},
    )
    assert found.kubelet == KubeletOptions(
        cpu_manager_policy=CpuPolicy.STATIC,
        reserved_cpus="0-1",
        memory_manager_policy=MemoryPolicy.STATIC,
        reserved_memory="0:memory=1Gi",
        swap_behavior=SwapBehavior.LIMITED,
        pod_manifest_path="/etc/manifests",
        eviction_hard="memory.available<100Mi,nodefs.available<10%",
        memory_throttling_factor=0.8,
        memory_reservation_policy=MemoryReservation.TIERED,
        eviction_pressure_transition_period=90.0,
        cgroup_root="/pods",
        shutdown_grace_period=30.0,
        shutdown_grace_period_critical_pods=10.0,
        image_gc_high_threshold=70,
        image_gc_low_threshold=60,
        image_minimum_age=90.0,
        image_maximum_age=86400.0,
    )
    assert (found.address, found.port, found.gates) == ("10.0.0.1", 10251, FeatureGates({"MemoryQoS": True}))
    assert (found.client_ca, found.runtime_endpoint) == (Path("/ca.crt"), "/run/containerd/containerd.sock")


def test_flags_count_more(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        {"eviction-hard": "", "port": 2, "feature-gates": "MemoryQoS=false"},
        evictionHard={"memory.available": "1Gi"},
        reservedSystemCPUs="0",
        port=1,
        cpuManagerPolicy="static",
        featureGates={"MemoryQoS": True, "PodLevelResources": True},
    )
    assert (found.kubelet.eviction_hard, found.kubelet.reserved_cpus, found.port) == ("", "0", 2)
    assert found.kubelet.cpu_manager_policy is CpuPolicy.STATIC
    assert found.gates == FeatureGates({"MemoryQoS": False, "PodLevelResources": True})


def test_what_a_node_tells_of_itself_is_a_file_that_says_the_same(tmp_path: Path) -> None:
    """`/configz` has every option of the kubelet with a place in the file, in upstream's form."""
    made = KubeletOptions(
        cpu_manager_policy=CpuPolicy.STATIC,
        reserved_cpus="0-1",
        memory_manager_policy=MemoryPolicy.STATIC,
        reserved_memory="0:memory=1Gi;1:memory=500Mi",
        memory_reservation_policy=MemoryReservation.TIERED,
        memory_throttling_factor=0.8,
        swap_behavior=SwapBehavior.LIMITED,
        eviction_hard="memory.available<100Mi,nodefs.available<10%",
        eviction_pressure_transition_period=90.0,
        image_gc_high_threshold=70,
        image_gc_low_threshold=60,
        image_minimum_age=90.0,
        image_maximum_age=86400.0,
        shutdown_by_priority=(ShutdownGroup(0, 20), ShutdownGroup(100, 10)),
        cgroup_root="/pods",
        pod_manifest_path="/etc/manifests",
    )
    said = document(made)
    assert said["evictionPressureTransitionPeriod"] == "1m30s"
    assert config(tmp_path, **said).kubelet == made


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"readOnlyPort": 10255}, "readOnlyPort: there is no port without authorization; leave it 0"),
        ({"kubeReserved": {"cpu": "1"}}, "unknown field `kubeReserved`"),
        ({"authentication": {"anonymous": {"enabled": True}}}, "authentication.anonymous.enabled: every caller"),
        ({"authentication": {"webhook": {"enabled": False}}}, "authentication.webhook.enabled: tokens are checked"),
        ({"authentication": {"x509": {"ca": "x"}}}, "unknown field `ca`"),
        ({"authorization": {"mode": "AlwaysAllow"}}, "authorization.mode: only Webhook"),
        ({"rotateCertificates": False}, "rotateCertificates: certificates are always renewed"),
        ({"tlsCertFile": "/a"}, "tlsCertFile and tlsPrivateKeyFile belong together"),
        ({"serverTLSBootstrap": False}, "serverTLSBootstrap: false needs tlsCertFile and tlsPrivateKeyFile"),
        ({"serverTLSBootstrap": True, "tlsCertFile": "/a", "tlsPrivateKeyFile": "/b"}, "which?"),
        ({"cpuManagerPolicy": "dynamic"}, "$.cpuManagerPolicy"),
        ({"port": "10250"}, "$.port"),
        ({"imageGCHighThresholdPercent": 80}, "must be less than imageGCHighThresholdPercent 80"),
        ({"imageGCHighThresholdPercent": 101}, "imageGCHighThresholdPercent 101: must be between 0 and 100"),
        ({"evictionPressureTransitionPeriod": "5"}, "evictionPressureTransitionPeriod: '5' is no duration"),
        ({"shutdownGracePeriodCriticalPods": "5s"}, "must not be more than shutdownGracePeriod"),
        ({"shutdownGracePeriodByPodPriority": [{"priority": 1}]}, "shutdownGracePeriodSeconds"),
        ({"imageMinimumGCAge": "soon"}, "imageMinimumGCAge: 'soon' is no duration"),
        ({"imageMaximumGCAge": "1m"}, "imageMaximumGCAge 60s: must be 0 or more than imageMinimumGCAge"),
        ({"kind": "KubeProxyConfiguration"}, "it has to be apiVersion kubelet.config.k8s.io/v1beta1"),
    ],
)
def test_what_is_refused(tmp_path: Path, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError) as error:
        config(tmp_path, **fields)
    assert why in error.value.message


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Expected `object`, got `null`"),
        (b"- 1\n", "Expected `object`, got `array`"),
        (b"a: [", "is not YAML"),
        (b"\x00\xff", "is not YAML"),
        (b"#" * (MOST_BYTES + 1), "is larger than"),
    ],
)
def test_what_is_no_configuration(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "kubelet.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        read(KubeletProcessOptions, None, path)
    assert why in error.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read(KubeletProcessOptions, None, tmp_path / "no")
