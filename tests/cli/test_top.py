"""`podfit top` as a user sees it: columns, notes on stderr, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from answers.test_top import DEPLOYMENT, PROXY, VPAS, metrics, quota, with_vpa
from cli.test_questions import ask


def shop() -> Conversation:
    pods = [pod("web", allocated="250m"), pod("api")]
    for made in pods:
        made["metadata"]["labels"] = {"app": made["metadata"]["name"]}
    conversation = Conversation(36, *pods)
    items = [metrics(), metrics("10m", "200Mi", "api")]
    conversation.documents |= {
        PODS: {"items": pods},
        METRICS: {"items": items},
        f"{PROXY}/metrics/cadvisor": quota(200, 50),
        "/apis/metrics.k8s.io/v1beta1/pods": {"items": items},
    }
    return conversation


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "POD   CONTAINER   CPU           CPU REQUEST   CPU LIMIT   THROTTLED   MEM            MEM REQUEST"),
        ([], "web   app         125m (50 %)   250m→500m     250m        25 %        64Mi (25 %)    256Mi"),
        (["pod/web"], "web   app         125m (50 %)   250m→500m"),
        (["-A"], "shop        web   app"),
        (["-o", "wide"], "web   app         n1     125m (50 %)"),
        (["-o", "yaml"], "source: metrics.k8s.io"),
        (["-n", "shop", "-l", "app=web"], "web"),
    ],
)
async def test_columns(arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = shop()
    assert await ask(tmp_path, conversation, "top", *arguments) == 0
    assert told in capsys.readouterr().out
    assert {method for method, _ in conversation.asked} == {"GET"}


@pytest.mark.parametrize(("order", "first"), [("name", "api"), ("cpu", "web"), ("memory%", "api")])
async def test_order(order: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, shop(), "top", "--sort", order, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["pod"] == first


async def test_recommendations_have_columns_where_there_are_vpas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = shop()
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    conversation.documents[PODS]["items"][0]["metadata"]["ownerReferences"] = [owner]
    meta, selector = {"name": "web", "namespace": "shop", "uid": "d"}, {"matchLabels": {"app": "web"}}
    conversation.documents |= {
        VPAS: {"items": [with_vpa()]},
        DEPLOYMENT: {"metadata": meta, "spec": {"selector": selector}},
    }
    assert await ask(tmp_path, conversation, "top") == 0
    header, api, web = capsys.readouterr().out.splitlines()
    at = header.index("CPU VPA")
    assert (web[at : at + 4], api[at], header.count("VPA")) == ("300m", "-", 2)
    assert await ask(tmp_path, conversation, "top", "-o", "wide") == 0
    assert "300m (100m..1)" in capsys.readouterr().out


async def test_without_the_metrics_api_it_is_said_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = shop()
    del conversation.documents[METRICS]
    summary: dict[str, Any] = {"pods": []}
    conversation.documents[f"{PROXY}/stats/summary"] = summary
    assert await ask(tmp_path, conversation, "top") == 0
    told = capsys.readouterr().err
    assert told.startswith("note: usage is read from the kubelets (stats/summary): metrics.k8s.io is not served here\n")
    assert "fix:" not in told, "nothing is wrong"


@pytest.mark.parametrize(("version", "advised"), [("v1.36.4-vendor", True), ("v1.36.2+podfit.0.1.0", False)])
async def test_what_cannot_run_on_the_cluster_is_not_advised(
    version: str, *, advised: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = shop()
    del conversation.documents[METRICS]
    conversation.documents["/version"]["gitVersion"] = version
    assert await ask(tmp_path, conversation, "top") == 4
    assert ("fix:  kubectl apply -f https://" in capsys.readouterr().err) == advised


async def test_frames_of_an_idle_container_look_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = shop()
    still = quota(10, 0)
    conversation.documents[f"{PROXY}/metrics/cadvisor"] = [still, still, still]
    web = conversation.documents[f"{PODS}/web"]
    conversation.documents[f"{PODS}/web"] = [web, web, web, 503]
    assert await ask(tmp_path, conversation, "top", "pod/web", "--watch", "--interval", "0") == 4
    captured = capsys.readouterr()
    frames = captured.out.strip().split("\n\n")
    assert len(frames) == 3
    assert {frame.split("\n")[0] for frame in frames} == {frames[0].split("\n")[0]}
    assert all("THROTTLED" in frame and "0 %" in frame for frame in frames)
    assert "throttling is not available" not in captured.err


async def test_without_any_usage_the_sizes_are_shown_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod())
    assert await ask(tmp_path, conversation, "top", "pod/web") == 4
    captured = capsys.readouterr()
    assert "web   app         -     500m          500m" in captured.out
    assert "error: no metrics: neither metrics.k8s.io nor a kubelet provides usage" in captured.err
    assert captured.err.count("fix:") == 1
    assert captured.err.count("neither metrics.k8s.io") == 1
    notes = [line.removeprefix("note: ") for line in captured.err.splitlines() if line.startswith("note: ")]
    assert notes
    assert all(captured.err.count(note) == 1 for note in notes)
    assert "Traceback" not in captured.err


async def test_watched_until_the_server_goes_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36, pod())
    conversation.documents |= {METRICS: {"items": [metrics()]}, f"{PODS}/web": [pod(), pod(), 503]}
    assert await ask(tmp_path, conversation, "top", "pod/web", "--watch", "--interval", "0") == 4
    assert capsys.readouterr().out.count("125m (25 %)") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["pod/web", "-A"], 2, "-A cannot be combined with pod/web"),
        (["pod/web", "-l", "app=web"], 2, "-l cannot be combined with pod/web"),
        (["node/n1"], 2, '"node/n1" is not one of pod/NAME'),
        (["--sort", "size"], 2, "--sort"),
        (["pod/none"], 4, "could not find"),
    ],
)
async def test_what_is_wrong_is_said(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(tmp_path, shop(), "top", *arguments) == code
    captured = capsys.readouterr()
    assert told in captured.err
    assert (captured.out, "Traceback" in captured.err) == ("", False)


async def test_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36)
    conversation.documents[PODS] = {"items": []}
    assert await ask(tmp_path, conversation, "top") == 0
    assert capsys.readouterr().out == "no running container\n"


async def test_rights_that_are_missing_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = shop()
    conversation.denied = {METRICS, f"{PROXY}/stats/summary", f"{PROXY}/metrics/cadvisor", VPAS}
    assert await ask(tmp_path, conversation, "top") == 4
    told = [line for line in capsys.readouterr().err.splitlines() if "needs: " in line or "cannot list" in line]
    assert told == ["note: not everything may be read; needs: list pods in namespace shop"]
