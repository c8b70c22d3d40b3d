"""Usage beside sizes: from wherever it is told, in the shapes of each source, and never invented."""

from typing import Any

import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from podfit.answers.facts.target import POD, WORKLOADS, Target, parse_target
from podfit.answers.top import Top, TopFacts, TopReader, top
from podfit.core.errors import ApiError
from podfit.net.exposition import samples
from support.clock import FakeClock

PROXY = "/api/v1/nodes/n1/proxy"
VPAS = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"
WEB = Target(POD, "web")
CID = "a" * 64


class Running(FakeClock):
    """A clock on which a pause is over at once."""

    async def sleep(self, seconds: float) -> None:
        await self.advance(seconds)


def metrics(cpu: str = "125m", memory: str = "64Mi", name: str = "web") -> dict[str, Any]:
    containers = [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}]
    return {"metadata": {"namespace": "shop", "name": name}, "containers": containers}


def counters(seconds: float, *, at: int, memory: int = 1 << 20) -> str:
    labels = '{container="app",namespace="shop",pod="web"}'
    return (
        "# TYPE container_cpu_usage_seconds_total counter\n"
        f"container_cpu_usage_seconds_total{labels} {seconds} {at}\n"
        f"container_memory_working_set_bytes{labels} {memory} {at}\nresource_scrape_error 0\n"
    )


def quota(periods: int, throttled: int, *, labels: str = 'container="app",id="/k",namespace="shop",pod="web"') -> str:
    return (
        f"container_cpu_cfs_periods_total{{{labels}}} {periods} 1\n"
        f"container_cpu_cfs_throttled_periods_total{{{labels}}} {throttled} 1\n"
    )


def reader(conversation: Conversation, **options: Any) -> TopReader:
    return TopReader(conversation.client, "shop", Running(), **options)


async def shown(conversation: Conversation) -> Top:
    return top(await reader(conversation).read(WEB))


async def test_of_a_pod_that_is_new_to_the_metrics_api_its_kubelet_is_asked() -> None:
    conversation = Conversation(36, pod(allocated="250m"))
    summary = {
        "podRef": {"namespace": "shop", "name": "web"},
        "containers": [{"name": "app", "cpu": {"usageNanoCores": 9}}],
    }
    conversation.documents |= {METRICS: {"items": []}, f"{PROXY}/stats/summary": {"pods": [summary]}}
    found = await shown(conversation)
    assert (found.source, found.rows[0].cpu.used) == ("metrics.k8s.io", "9n")
    said = "usage is read from the kubelets (stats/summary): metrics.k8s.io has nothing yet of pods that are new"
    assert said in found.notes


async def test_a_kubelet_that_has_no_rate_yet_is_asked_for_its_counters() -> None:
    conversation = Conversation(36, pod())
    ref = {"name": "web", "namespace": "shop"}
    new = {"name": "app", "cpu": {"usageCoreNanoSeconds": 5}, "memory": {"workingSetBytes": 128 << 20}}
    conversation.documents[f"{PROXY}/stats/summary"] = {"pods": [{"podRef": ref, "containers": [new]}]}
    assert (await shown(conversation)).source == "stats/summary"  # it has no counters
    conversation.documents[f"{PROXY}/metrics/resource"] = [counters(10, at=1000), counters(10.5, at=2000)]
    found = await shown(conversation)
    assert (found.source, found.rows[0].cpu.used) == ("metrics/resource", "500m")


@pytest.mark.parametrize("minor", [27, 30, 33, 36])
async def test_usage_beside_limits_on_servers_of_every_age(minor: int) -> None:
    conversation = Conversation(minor, pod(allocated="250m"))
    conversation.documents |= {METRICS: {"items": [metrics()]}, f"{PROXY}/metrics/cadvisor": quota(200, 50)}
    found = await shown(conversation)
    row = found.rows[0]
    assert (found.source, found.missing) == ("metrics.k8s.io", ())
    assert (row.cpu.used, row.cpu.limit, row.cpu.of_limit) == ("125m", "250m", 0.5)
    assert (row.cpu.desired, row.cpu.allocated) == ("500m", "250m")
    assert (row.memory.used, row.memory.limit, row.memory.of_limit) == ("64Mi", "256Mi", 0.25)
    assert (row.throttled, row.vpa, row.cpu.recommended) == (0.25, "", "")
    assert {method for method, _ in conversation.asked} == {"GET"}
    assert bool(found.notes) == (minor < 33)


async def test_without_the_metrics_api_the_kubelets_are_asked_and_it_is_said() -> None:
    conversation = Conversation(36, pod())
    container = {"name": "app", "cpu": {"usageNanoCores": 250_000_000}, "memory": {"workingSetBytes": 128 << 20}}
    ref = {"name": "web", "namespace": "shop"}
    conversation.documents[f"{PROXY}/stats/summary"] = {"pods": [{"podRef": ref, "containers": [container]}]}
    found = await shown(conversation)
    assert (found.source, found.rows[0].cpu.used, found.rows[0].memory.used) == ("stats/summary", "250m", "128Mi")
    assert found.notes == ("usage is read from the kubelets (stats/summary): metrics.k8s.io is not served here",)
    assert found.fix == ""


async def test_counters_of_the_kubelet_are_read_twice() -> None:
    conversation = Conversation(36, pod())
    conversation.documents[f"{PROXY}/metrics/resource"] = [counters(10, at=1000), counters(10.5, at=2000)]
    found = await shown(conversation)
    assert (found.source, found.rows[0].cpu.used, found.rows[0].memory.used) == ("metrics/resource", "500m", "1Mi")


@pytest.mark.parametrize(
    ("second", "what"), [(counters(10, at=1000), "not measured again"), (counters(1, at=9000), "began anew")]
)
async def test_a_rate_that_cannot_be_known_is_not_told(second: str, what: str) -> None:
    conversation = Conversation(36, pod())
    conversation.documents[f"{PROXY}/metrics/resource"] = [counters(10, at=1000), second]
    found = await shown(conversation)
    assert (found.rows[0].cpu.used, found.rows[0].memory.used) == ("", "1Mi"), what
    assert "no usage yet, or only a part of it, of web" in found.missing[0]


async def test_asked_again_the_last_reading_is_the_first() -> None:
    conversation = Conversation(36, pod())
    conversation.documents[f"{PROXY}/metrics/resource"] = [
        counters(10, at=1000),
        counters(10.5, at=2000),
        counters(12.5, at=4000),
    ]
    conversation.documents[f"{PROXY}/metrics/cadvisor"] = [quota(100, 50), quota(200, 60), quota(10, 1)]
    asking = reader(conversation)
    seen = [top(await asking.read(WEB)).rows[0] for _ in range(3)]
    assert [row.cpu.used for row in seen] == ["500m", "1", ""]
    assert [row.throttled for row in seen] == [0.5, 0.1, 0.1], "since the start, since then, since a new start"


@pytest.mark.parametrize(
    ("answer", "why", "fix"),
    [
        (None, "metrics.k8s.io is not served here", True),
        (503, "its metrics-server is down", False),
        (403, "metrics.k8s.io was not read: pods is forbidden", False),
    ],
)
async def test_usage_that_nobody_tells_is_missing_with_its_reason(answer: int | None, why: str, *, fix: bool) -> None:
    conversation = Conversation(36, pod(), forbidden=(METRICS,) if answer == 403 else ())
    if answer == 503:
        conversation.documents[METRICS] = 503
    found = await shown(conversation)
    assert (found.source, found.rows[0].cpu.used, found.rows[0].cpu.limit) == ("", "", "500m")
    assert why in found.notes[0]
    assert "no usage from node n1: its kubelet serves neither /stats/summary nor /metrics/resource" in found.notes
    assert found.missing[0] == "usage is not available: neither metrics.k8s.io nor a kubelet provides it"
    assert bool(found.fix) == fix


async def test_kubelets_that_may_not_be_asked_are_named_once() -> None:
    paths = tuple(f"{PROXY}/{path}" for path in ("stats/summary", "metrics/cadvisor"))
    found = await shown(Conversation(36, pod(), forbidden=paths))
    assert sum("no usage from node n1: pods is forbidden" in note for note in found.notes) == 1
    assert any("throttling is not available on n1: pods is forbidden" in missing for missing in found.missing)


async def test_throttling_is_not_available_where_nothing_is_counted() -> None:
    conversation = Conversation(36, pod())
    conversation.documents |= {METRICS: {"items": [metrics()]}}
    assert (
        "throttling is not available on n1: its kubelet serves no /metrics/cadvisor"
        in (await shown(conversation)).missing
    )
    conversation.documents[f"{PROXY}/metrics/cadvisor"] = "other_metric 1\n"
    found = await shown(conversation)
    assert found.rows[0].throttled is None
    assert "throttling is not available for some containers on n1: the kubelet counts none" in found.missing


async def test_a_cgroup_alone_says_whose_throttling_it_is() -> None:
    web = pod()
    web["status"]["containerStatuses"][0]["containerID"] = f"containerd://{CID}"
    conversation = Conversation(36, web)
    labels = f'container="",id="/kubepods/podx/{CID}",namespace="",pod=""'
    conversation.documents[f"{PROXY}/metrics/cadvisor"] = quota(10, 5, labels=labels)
    assert (await shown(conversation)).rows[0].throttled == 0.5


def with_vpa(*, created: str = "2026-01-01T00:00:00Z", name: str = "web", cpu: str = "300m") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "100Mi"}
    recommended = {"containerName": "app", "target": amounts, "lowerBound": {"cpu": "100m"}, "upperBound": {"cpu": "1"}}
    return {
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "updatePolicy": None},
        "status": {"recommendation": {"containerRecommendations": [recommended]}},
    }


async def test_what_a_vpa_recommends_for_pods_of_its_target() -> None:
    ours = pod()
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    ours["metadata"] |= {"labels": {"app": "web"}, "ownerReferences": [owner]}
    conversation = Conversation(36, ours)
    selector = {"matchLabels": {"app": "web"}}
    conversation.documents |= {
        DEPLOYMENT: {"metadata": {"name": "web", "namespace": "shop", "uid": "d"}, "spec": {"selector": selector}},
        VPAS: {"items": [with_vpa(created="2026-02-01T00:00:00Z", name="young", cpu="2"), with_vpa()]},
    }
    row = (await shown(conversation)).rows[0]
    assert (row.vpa, row.cpu.recommended, row.cpu.lower, row.cpu.upper) == ("web", "300m", "100m", "1")
    assert (row.memory.recommended, row.memory.lower) == ("100Mi", "")
    conversation.documents[DEPLOYMENT]["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    assert (await shown(conversation)).rows[0].vpa == ""


async def test_vpas_whose_pods_are_not_known_are_named() -> None:
    odd = with_vpa(name="odd")
    odd["spec"]["targetRef"] = {"kind": "Rollout", "name": "web"}
    conversation = Conversation(36, pod())
    conversation.documents[VPAS] = {"items": [with_vpa(), odd]}
    notes = (await shown(conversation)).notes
    unread = "not read: the pods of vpa/{}: Cannot read targetRef. Reason: {} shop/web does not exist"
    assert {unread.format("web", "Deployment"), unread.format("odd", "Rollout")} <= set(notes)
    refused = await shown(Conversation(36, pod(), forbidden=(VPAS,)))
    assert any("not read: verticalpodautoscalers: pods is forbidden" in note for note in refused.notes)


@pytest.mark.parametrize(
    ("order", "first"),
    [("name", "a"), ("cpu", "b"), ("memory", "c"), ("cpu%", "c"), ("memory%", "b"), ("throttled", "a")],
)
async def test_order(order: Any, first: str) -> None:
    pods = [pod("a"), pod("b", cpu="4", memory="100Mi"), pod("c", cpu="100m", memory="1Gi"), pod("d")]
    conversation = Conversation(36, *pods)
    labels = 'container="app",id="/k",namespace="shop",pod="a"'
    conversation.documents |= {
        PODS: {"items": pods},
        f"{PROXY}/metrics/cadvisor": quota(10, 1, labels=labels),
        METRICS: {"items": [metrics("1m", "1Mi", "a"), metrics("1", "90Mi", "b"), metrics("90m", "100Mi", "c")]},
    }
    found: TopFacts = await reader(conversation).read(None)
    rows = top(found, order).rows
    assert rows[0].pod == first
    assert order == "name" or rows[-1].pod == "d", "what is not known comes last"


async def test_only_running_containers_of_running_pods_are_shown() -> None:
    ended, waiting = pod("old", phase="Succeeded"), pod("new")
    waiting["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
    conversation = Conversation(36, pod(), ended, waiting)
    conversation.documents |= {PODS: {"items": [pod(), ended, waiting]}, METRICS: {"items": []}}
    found = top(await reader(conversation).read(None))
    assert [row.pod for row in found.rows] == ["web"]
    assert "of web: the containers are too new" in found.missing[0]


async def test_a_workload_and_what_it_lacks() -> None:
    conversation = Conversation(36, pod())
    selector = {"matchLabels": {"app": "web"}}
    conversation.documents |= {DEPLOYMENT: {"spec": {"selector": selector, "template": {}}}, PODS: {"items": [pod()]}}
    target = parse_target("deploy/web", *WORKLOADS)
    assert [row.pod for row in top(await reader(conversation).read(target)).rows] == ["web"]
    with pytest.raises(ApiError, match="does not serve deployments"):
        await reader(Conversation(36)).read(target)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('a{x="1",y="b\\"c\\\\"} 2.5 17', [({"x": "1", "y": 'b"c\\'}, 2.5, 17)]),
        ("a 3", [({}, 3.0, 0)]),
        ('a{x="}"} 1', [({"x": "}"}, 1.0, 0)]),
        ('a{x="1', []),
        ("a{} nothing", []),
        ("ab 1", []),
        ("# TYPE a gauge", []),
    ],
)
def test_lines_of_the_text_format(line: str, expected: list[Any]) -> None:
    assert [(dict(sample.labels), sample.value, sample.time) for sample in samples(line, ("a",))] == expected
