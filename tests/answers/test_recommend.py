"""Right sizes: from a VPA, its checkpoint, Prometheus or a while of usage, with reasons and what they save."""

import asyncio
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from cli.test_questions import ask
from podfit.answers.autoscaling.recommend import Recommendations, recommend
from podfit.answers.autoscaling.recommended_facts import FactsReader, UsageWindow
from podfit.answers.facts.target import WORKLOADS, Kind
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerCheckpoint
from podfit.api.meta import codec
from podfit.cli.questions.recommend import total_saved
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.flags import EstimatorFlags
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.net.system import SystemClock
from podfit.vpa.history import gathered
from podfit.vpa.history.prometheus import Amount, History
from support import own_history
from support.clock import FakeClock

GROUP = "/apis/autoscaling.k8s.io/v1/namespaces/shop"
VPAS, CHECKPOINTS = f"{GROUP}/verticalpodautoscalers", f"{GROUP}/verticalpodautoscalercheckpoints"
SETS = "/apis/apps/v1/namespaces/shop/replicasets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
WHILE = UsageWindow(60, 15)
FLAGS = EstimatorFlags(min_cpu_millicores=10, min_memory_mb=16)
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-rs", "uid": "u", "controller": True}


def owned(name: str, **more: Any) -> dict[str, Any]:
    made = pod(name, **more)
    made["metadata"]["ownerReferences"] = [OWNER]
    return made


def metrics(**used: tuple[str, str]) -> dict[str, Any]:
    items = [
        {"metadata": {"name": name.replace("_", "-"), "namespace": "shop"}, "timestamp": "2026-01-01T00:00:00Z",
         "containers": [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}]}
        for name, (cpu, memory) in used.items()
    ]  # fmt: skip
    return {"kind": "PodMetricsList", "metadata": {}, "items": items}


def shop(**more: Any) -> Conversation:
    """Two pods of the Deployment web, and one of nobody."""
    pods = owned("web-1"), owned("web-2"), pod("tool")
    conversation = Conversation(36, *pods)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    deployment = {"metadata": {"name": "web", "namespace": "shop", "uid": "d"}}
    replica_set = {"metadata": {"name": "web-rs", "namespace": "shop", "uid": "u", "ownerReferences": [owner]}}
    conversation.documents |= {
        PODS: {"items": pods},
        SETS: {"items": [replica_set]},
        DEPLOYMENTS: {"items": [deployment]},
        METRICS: metrics(web_1=("100m", "64Mi"), web_2=("200m", "100Mi"), tool=("1500m", "300Mi")),
    } | more
    return conversation


async def asked(
    conversation: Conversation, watching: UsageWindow = WHILE, history: Any = None, wanted: Any = None
) -> Recommendations:
    clock = FakeClock()
    reader = FactsReader(conversation.client, clock, "shop", wanted=wanted)
    reading = asyncio.ensure_future(reader.read(watching, history))
    await clock.settle()
    for _ in range(8):
        await clock.advance(watching.interval)
    return recommend(await reading, FLAGS)


def sizes(recommendations: Recommendations) -> dict[tuple[str, str], tuple[str, str, str]]:
    return {
        (row.workload, size.resource): (size.request, size.recommended, size.saves)
        for row in recommendations.workloads
        for size in row.sizes
    }


async def test_usage_that_is_watched_gives_a_first_guess() -> None:
    found = await asked(shop())
    cpu, memory = sizes(found)["deployment/web", "cpu"], sizes(found)["deployment/web", "memory"]
    assert cpu == ("500m", "247m", "506m"), "90 % of two pods' samples and 15 %, for both of them"
    assert memory[0] == "256Mi"
    assert sizes(found)["pod/tool", "cpu"][2].startswith("-"), "it needs more"
    (row, _) = found.workloads
    assert {size.source for size in row.sizes} == {"usage"}
    assert row.sizes[0].samples == 10
    assert row.sizes[0].confidence is not None
    assert row.sizes[0].confidence < 0.01
    assert "90 % of 10 CPU samples were not above it; 15 % on top" in row.sizes[0].reason
    assert "usage was watched for 60 s" in found.notes[0]


async def test_a_pod_of_a_replica_set_that_is_gone_is_its_own() -> None:
    found = shop()
    found.documents[SETS]["items"][0]["metadata"]["uid"] = "made-anew"
    assert sorted(row.workload for row in (await asked(found)).workloads) == ["pod/tool", "pod/web-1", "pod/web-2"]


async def test_a_replica_set_of_a_deployment_that_is_another_stands_for_itself() -> None:
    found = shop()
    found.documents[DEPLOYMENTS]["items"][0]["metadata"]["uid"] = "made-anew"
    assert sorted(row.workload for row in (await asked(found)).workloads) == ["pod/tool", "replicaset/web-rs"]


@pytest.mark.parametrize("kind", [kind for kind in WORKLOADS if kind.kind != "ReplicaSet"], ids=lambda kind: kind.kind)
async def test_a_pod_belongs_to_a_controller_of_its_uid_only(kind: Kind) -> None:
    """Whatever name and kind it says; of a kind that nobody here knows it is believed."""
    true, forged, custom = owned("true-1"), owned("forged-1"), owned("custom-1")
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "w", "controller": True}
    true["metadata"]["ownerReferences"] = [reference | {"uid": "w1"}]
    forged["metadata"]["ownerReferences"] = [reference | {"uid": "w2"}]
    custom["metadata"]["ownerReferences"] = [reference | {"apiVersion": "x.io/v1", "uid": "w2"}]
    found = shop()
    found.documents[PODS]["items"] = (true, forged, custom)
    path = f"{kind.path}/namespaces/shop/{kind.resource}"
    found.documents[path] = {"items": [{"metadata": {"name": "w", "namespace": "shop", "uid": "w1"}}]}
    reader = FactsReader(found.client, FakeClock(), "shop")
    pods = (await reader.read(UsageWindow(0))).pods
    name = f"{kind.kind.lower()}/w"
    told = sorted((str(workload), pod.metadata.name) for workload, members in pods.items() for pod in members)
    assert told == sorted([(name, "true-1"), ("pod/forged-1", "forged-1"), (name, "custom-1")])


async def test_one_workload_is_asked_about() -> None:
    found = await asked(shop(), wanted=("Deployment", "web"))
    assert [row.workload for row in found.workloads] == ["deployment/web"]


def vpa(**status: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web-vpa", "namespace": "shop"}
    return {"items": [{"metadata": meta, "spec": {"targetRef": target}, "status": status}]}


def provided() -> dict[str, Any]:
    amounts = {"cpu": "200m", "memory": "128Mi"}
    recommendation = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    condition = {"type": "RecommendationProvided", "status": "True"}
    return {"recommendation": {"containerRecommendations": [recommendation]}, "conditions": [condition]}


async def test_a_vpa_says_it_and_its_workload_is_not_watched() -> None:
    found = await asked(shop(**{VPAS: vpa(**provided()), METRICS: 503}), UsageWindow(0))
    assert sizes(found) == {
        ("deployment/web", "cpu"): ("500m", "200m", "600m"),
        ("deployment/web", "memory"): ("256Mi", "128Mi", "256Mi"),
    }
    assert found.workloads[0].sizes[0].source == "VPA"
    assert found.unknown == ("shop pod/tool app",)
    assert found.saves == {"cpu": "600m", "memory": "256Mi"}


def checkpoint(hours: int) -> dict[str, Any]:
    """Of a container that used 300m, each minute, for so long."""
    state, key, now = ClusterState(), VpaKey("shop", "web-vpa"), FakeClock().now().timestamp()
    state.set_vpa(key, from_map({"a": "b"}), None)
    state.set_pod(PodKey("shop", "web-0"), {"a": "b"}, ["app"], now)
    minutes = np.arange(hours * 60)
    slots, times = (
        np.zeros(len(minutes), dtype=np.intp),
        np.array([now - 60.0 * number for number in reversed(range(hours * 60))]),
    )
    state.model.add_cpu(slots, np.full(len(minutes), 300.0), times)
    ((_, (made,)),) = state.checkpoints([key], now)
    assert isinstance(made, VerticalPodAutoscalerCheckpoint)
    return {"items": [json.loads(codec.encode(made))]}


@pytest.mark.parametrize("version", ["podfit.dev/slice-v3", "v1"])
async def test_a_checkpoint_of_a_slice_or_of_another_form_says_nothing(version: str) -> None:
    other = checkpoint(12)
    other["items"][0]["status"]["version"] = version
    found = await asked(shop(**{VPAS: vpa(), CHECKPOINTS: other}), UsageWindow(0))
    assert not found.workloads


async def test_a_checkpoint_says_why_and_how_sure_it_is() -> None:
    found = await asked(shop(**{VPAS: vpa(), CHECKPOINTS: checkpoint(12)}), UsageWindow(0))
    (size,) = found.workloads[0].sizes
    assert (size.resource, size.source, size.samples) == ("cpu", "checkpoint", 720)
    assert size.confidence == pytest.approx(0.5, abs=0.01)
    assert 300 < int(size.recommended.removesuffix("m")) < 400
    assert "90 % of 720 CPU samples" in size.reason
    both = await asked(shop(**{VPAS: vpa(**provided()), CHECKPOINTS: checkpoint(12)}), UsageWindow(0))
    first = both.workloads[0].sizes[0]
    assert (first.recommended, first.source, first.samples) == ("200m", "VPA", 720)


async def test_history_goes_before_everything() -> None:
    now = FakeClock().now().timestamp()
    amounts = tuple(Amount(PodKey("shop", "web-1"), "app", now - 3600.0 * hour, 0.8) for hour in range(48, 0, -1))

    async def history(_: float, pods: Collection[PodKey]) -> History:
        return History(cpu=amounts)

    found = await asked(shop(**{VPAS: vpa(**provided())}), UsageWindow(60), history)
    (size,) = found.workloads[0].sizes
    assert (size.source, size.samples) == ("Prometheus", 48 * 60)
    assert 900 < int(size.recommended.removesuffix("m")) < 1100


async def test_what_may_not_be_read_is_said() -> None:
    conversation = shop()
    conversation.forbidden = (SETS, VPAS)
    found = await asked(conversation)
    assert [row.workload for row in found.workloads] == ["pod/tool", "replicaset/web-rs"]
    assert any(note.startswith("not read: ReplicaSets: ") for note in found.notes)


@pytest.mark.parametrize(
    ("saves", "said"),
    [
        ({"cpu": "-116m", "memory": "234Mi"}, ("saves", "234Mi memory in requests; needs 116m cpu more")),
        ({"cpu": "-116m", "memory": "-203699302"}, ("needs", "116m cpu, 194.3Mi memory more in requests")),
        ({"cpu": "0", "memory": "0"}, ("saves", "nothing: requests are as recommended")),
    ],
)
def test_what_is_saved_and_what_is_needed_more(saves: dict[str, str], said: tuple[str, str]) -> None:
    assert total_saved(saves) == said


async def test_watching_is_announced_only_where_usage_is_watched() -> None:
    for vpas, number in ((vpa(**provided()), 0), (vpa(), 1)):
        told: list[str] = []
        clock = FakeClock()
        reader = FactsReader(shop(**{VPAS: vpas}).client, clock, "shop", wanted=("Deployment", "web"), tell=told.append)
        reading = asyncio.ensure_future(reader.read(WHILE))
        await clock.settle()
        for _ in range(8):
            await clock.advance(WHILE.interval)
        await reading
        assert sum("is watched for" in line for line in told) == number
        assert told[number:] == [f"usage: {at} of 60 s" for at in (15, 30, 45, 60)] * number


class SlowClock(FakeClock):
    """Time passes while the cluster is asked, too."""

    def monotonic(self) -> float:
        self.taken = getattr(self, "taken", 0.0) + 0.01
        return super().monotonic() + self.taken


async def test_usage_is_watched_for_as_long_as_it_is_said() -> None:
    clock = SlowClock()
    reading = asyncio.ensure_future(FactsReader(shop().client, clock, "shop").read(WHILE))
    await clock.settle()
    for _ in range(9):
        await clock.advance(WHILE.interval)
    readings = (await reading).readings
    assert readings[-1].time - readings[0].time >= 59


async def test_why_there_is_no_usage_is_said_once() -> None:
    conversation = shop()
    for path in [path for path in conversation.documents if "metrics" in path]:
        del conversation.documents[path]
    notes = (await asked(conversation)).notes
    assert sum("metrics.k8s.io" in note for note in notes) == 1, notes
    assert not any("watched" in note for note in notes)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            [],
            0,
            "deployment/web   2      app         cpu        500m      200m    600m    -      VPA    as its VPA says",
        ),
        ([], 0, "saves     600m cpu, 256Mi memory in requests"),
        (["-o", "wide"], 0, "LOWER"),
        (["-o", "json"], 0, '"recommended": "200m"'),
        (["-o", "yaml"], 0, "recommended: 200m"),
        (["deployment/web"], 0, "VPA"),
        (["deployment/none"], 4, "the server could not find the requested resource"),
        (["--percentile", "90"], 2, "--percentile 90: it has to be more than 0 and at most 1"),
        (["--storage", "tape"], 2, "--storage tape: it has to be prometheus, history or checkpoint"),
        (["--storage", "history", "--history-dir", "/nowhere/at/all"], 3, "there is no history in /nowhere/at/all"),
        (["--history-dir", "/nowhere"], 2, "--history-dir: it goes with --storage history"),
        (["--margin", "-1"], 2, "--margin -1: it has to be at least 0"),
    ],
)
async def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    conversation = shop(**{VPAS: vpa(**provided())})
    assert await ask(tmp_path, conversation, "recommend", "--for", "0", *arguments) == code
    shown = capsys.readouterr()
    assert said in shown.out + shown.err


async def test_the_command_goes_by_podfits_own_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before what a VPA says, as by Prometheus; of pods that run."""
    kept = own_history.directory(tmp_path / "history")
    own_history.write_journal(kept, int(SystemClock().now().timestamp()) - 7200, namespace="shop", pods=2)
    conversation = shop(**{VPAS: vpa(**provided())})
    options = ("--storage", "history", "--history-dir", str(tmp_path / "history"), "-o", "json")
    assert await ask(tmp_path, conversation, "recommend", *options) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out)["workloads"] if row["workload"] == "deployment/web"]
    sizes = {size["resource"]: size for size in row["sizes"]}
    assert (sizes["cpu"]["source"], sizes["cpu"]["samples"]) == ("history", 60)
    assert sizes["cpu"]["recommended"] != "200m"


async def test_more_of_a_history_than_is_read_whole_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered, "MOST_GATHERED", 100)
    kept = own_history.directory(tmp_path / "history")
    own_history.write_journal(kept, int(SystemClock().now().timestamp()) - 7200, namespace="shop", pods=2)
    options = ("--storage", "history", "--history-dir", str(tmp_path / "history"))
    assert await ask(tmp_path, shop(), "recommend", *options) == 2
    assert "more than 100 samples: name a workload, or a shorter --history-length" in capsys.readouterr().err
