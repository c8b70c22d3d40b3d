"""What a node tells of the usage of its containers, and of its own configuration."""

import json

import pytest
from msgspec.structs import replace

from kubelet.harness import MACHINE, Node, container
from podfit.core.features import FeatureGates
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.cgroup.common import counted
from podfit.kubelet.cgroup.protocol import Throttling
from podfit.kubelet.node.machine import cpu_seconds, memory_bytes, working_set_bytes
from podfit.kubelet.runtime.types import ContainerStats
from podfit.kubelet.server.configz import configuration
from podfit.kubelet.server.usage import Family, Sample, exposition

CPU = 'container_cpu_usage_seconds_total{container="c1",namespace="default",pod="web"}'
MEMORY = 'container_memory_working_set_bytes{container="c1",namespace="default",pod="web"}'
AT = 1_795_215_824_619_000_000


def say(node: Node, *, cpu: int | None = 1_500_000_000, memory: int | None = 716_800) -> None:
    running = node.runtime.running("c1")
    node.runtime.stats = [
        ContainerStats(
            id=running.id, name="c1", labels=running.labels, timestamp=AT, cpu_usage=cpu, memory_working_set=memory
        )
    ]


async def test_usage_of_containers_pods_and_node(node: Node) -> None:
    node.add()
    await node.runs()
    say(node)
    status, text = await node.ask("/metrics/resource")
    lines = text.splitlines()
    assert status == 200
    assert f"{CPU} 1.5 {AT // 1_000_000}" in lines
    assert f"{MEMORY} 716800 {AT // 1_000_000}" in lines
    assert f'pod_memory_working_set_bytes{{namespace="default",pod="web"}} 716800 {AT // 1_000_000}' in lines
    assert any(line.startswith('container_start_time_seconds{container="c1"') for line in lines)
    assert any(line.startswith("node_cpu_usage_seconds_total ") for line in lines)
    assert any(line.startswith("node_memory_working_set_bytes ") for line in lines)
    assert lines[-1] == "resource_scrape_error 0"
    assert lines == [line for line in lines if line], "no blank lines"


async def test_what_the_runtime_does_not_say_is_not_said(node: Node) -> None:
    node.add()
    await node.runs()
    say(node, cpu=None)
    _, text = await node.ask("/metrics/resource")
    assert ("container_cpu_usage_seconds_total" in text, MEMORY in text) == (False, True)
    node.runtime.exit("c1", 0)
    _, text = await node.ask("/metrics/resource")
    assert MEMORY not in text, "it has ended"


async def test_a_silent_runtime_is_a_scrape_error(node: Node) -> None:
    node.add()
    await node.runs()
    node.runtime.fail["stats"] = "no answer"
    assert "resource_scrape_error 1" in (await node.ask("/metrics/resource"))[1]
    node.runtime.fail["stats"] = "no answer"
    assert (await node.ask("/metrics/cadvisor"))[0] == 500


async def test_throttling_of_containers_with_a_quota(node: Node) -> None:
    node.add()
    await node.runs()
    say(node)
    assert "_cfs_" not in (await node.ask("/metrics/cadvisor"))[1]
    container = node.runtime.running("c1").id
    path = node.cgroups.layout.container("web", "Burstable", container)
    node.cgroups.groups[path] = node.cgroups.groups[path.rpartition("/")[0]]
    node.cgroups.throttled[container] = Throttling(periods=200, throttled=50, seconds=2.5)
    _, text = await node.ask("/metrics/cadvisor")
    values = {line.partition("{")[0]: line.rpartition(" ")[2] for line in text.splitlines() if line[0] != "#"}
    assert {name: value for name, value in values.items() if "_cfs_" in name} == {
        "container_cpu_cfs_periods_total": "200",
        "container_cpu_cfs_throttled_periods_total": "50",
        "container_cpu_cfs_throttled_seconds_total": "2.5",
    }
    assert all('container="c1"' in line and 'pod="web"' in line for line in text.splitlines() if line[0] != "#")


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        ("nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000", Throttling(periods=10, throttled=4, seconds=2.5)),
        (
            "usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000",
            Throttling(periods=10, throttled=4, seconds=2.5),
        ),
        ("nr_periods 0\nnr_throttled 0\nthrottled_time 0", None),
        ("usage_usec 1", None),
    ],
)
def test_both_kernels_spellings(stat: str, expected: Throttling | None) -> None:
    assert counted(stat) == expected


async def test_configuration(node: Node) -> None:
    status, text = await node.ask("/configz")
    found = json.loads(text)["kubeletconfig"]
    assert status == 200
    assert found["kind"] == "KubeletConfiguration"
    assert (found["cpuManagerPolicy"], found["memoryManagerPolicy"], found["memorySwap"]) == ("none", "None", {})
    assert (found["maxPods"], found["cpuCFSQuotaPeriod"]) == (110, "100ms")
    assert found["evictionHard"]["memory.available"] == "100Mi"
    assert found["evictionHard"]["nodefs.available"] == "10%"
    assert "featureGates" not in found


def test_configuration_that_is_not_as_usual(node: Node) -> None:
    gates = FeatureGates({"MemoryQoS": True})
    found = configuration(node.config, Machine(memory=MACHINE.memory, swap=1 << 30, gates=gates))["kubeletconfig"]
    assert (found["memorySwap"], found["featureGates"]) == ({"swapBehavior": "LimitedSwap"}, {"MemoryQoS": True})


def test_labels_are_escaped_and_empty_families_left_out() -> None:
    family = Family("a", "gauge", "A.", (Sample(0.5, {"x": 'say "hi"\n\\'}),))
    assert exposition((Family("b", "gauge", "B.", ()), family)).decode().splitlines()[2:] == [
        'a{x="say \\"hi\\"\\n\\\\"} 0.5'
    ]


def test_the_machine_itself() -> None:
    assert cpu_seconds() > 0
    assert 0 < working_set_bytes() < memory_bytes()


async def test_the_summary_tells_rates_once_there_are_two_samples(node: Node) -> None:
    node.add()
    await node.runs()
    say(node)
    first = json.loads((await node.ask("/stats/summary"))[1])
    assert first["node"]["nodeName"] == "n1"
    assert first["node"]["memory"].keys() == {"time", "workingSetBytes", "availableBytes"}
    [pod] = first["pods"]
    assert pod["podRef"] == {"name": "web", "namespace": "default", "uid": "web"}
    [told] = pod["containers"]
    assert (told["name"], told["cpu"]["usageCoreNanoSeconds"]) == ("c1", 1_500_000_000)
    assert "usageNanoCores" not in told["cpu"]
    [used] = node.runtime.stats
    node.runtime.stats = [replace(used, timestamp=AT + 2_000_000_000, cpu_usage=2_500_000_000)]
    [pod] = json.loads((await node.ask("/stats/summary"))[1])["pods"]
    assert pod["containers"][0]["cpu"]["usageNanoCores"] == 500_000_000
    assert (pod["cpu"]["usageNanoCores"], pod["memory"]["workingSetBytes"]) == (500_000_000, 716_800)


async def test_cadvisor_tells_usage_and_limits(node: Node) -> None:
    limits = {"cpu": "500m", "memory": "64Mi"}
    node.add(containers=[container("c1", resources={"requests": limits, "limits": limits})])
    await node.runs()
    say(node)
    _, text = await node.ask("/metrics/cadvisor")
    told = {line.partition("{")[0]: line.rpartition(" ")[2] for line in text.splitlines() if line[0] != "#"}
    assert told["container_cpu_usage_seconds_total"] == "1.5"
    assert told["container_memory_working_set_bytes"] == "716800"
    assert told["container_spec_memory_limit_bytes"] == str(64 << 20)
    assert (told["container_spec_cpu_quota"], told["container_spec_cpu_period"]) == ("50000", "100000")
