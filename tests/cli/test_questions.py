"""`podfit plan` and `podfit why` as a user calls them: a kubeconfig, a server, text and an exit code."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answers.conversation import NODE, PODS, Conversation, pod
from podfit.cli.app import run
from podfit.client.kubeconfig import Access
from podfit.client.kubeconfig_edit import standalone
from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import server_context


@asynccontextmanager
async def kubeconfig(directory: Path, conversation: Conversation) -> AsyncIterator[str]:
    authority = Authority.load(directory, clock=SystemClock())
    server = HttpsServer(conversation.send, server_context(authority.server("api", hosts=("127.0.0.1",))))
    port = await server.listen("127.0.0.1", 0)
    path = directory / "kubeconfig"
    access = Access(f"https://127.0.0.1:{port}", authority.certificate, token="t", namespace="shop")
    path.write_bytes(standalone("test", access))
    try:
        yield str(path)
    finally:
        await server.close(deadline=1)


async def ask(directory: Path, conversation: Conversation, *arguments: str) -> int:
    async with kubeconfig(directory, conversation) as path:
        return await asyncio.to_thread(run, [*arguments, "--kubeconfig", path])


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["plan", "pod/web", "--cpu", "700m"], 0, "500m/500m → 700m/700m   -        fits      in place, no restart"),
        (["plan", "pod/web", "--memory", "512Mi"], 0, 'restarts "app" (resizePolicy memory: RestartContainer)'),
        (["plan", "pod/web", "--cpu", "3"], 1, "deferred   short of 1 cpu"),
        (
            ["plan", "pod/web", "--cpu", "700m", "-o", "wide"],
            0,
            "web   n1     Guaranteed   app         cpu limit     500m   700m   fits      in place, no restart",
        ),
        (["plan", "pod/web", "--cpu", "500m", "-o", "wide"], 0, "-       -     -      unchanged   -"),
        (["plan", "pod/web", "--cpu", "9"], 1, "requested: 9, allocatable: 4"),
        (["plan", "pod/web", "--cpu", "9", "-o", "json"], 1, '"verdict": "refused"'),
        (["plan", "pod/web", "--cpu", "9", "-o", "yaml"], 1, "verdict: refused"),
        (["why", "pod/web"], 0, "web  nothing is outstanding"),
        (["why", "node/n1"], 0, "cpu       allocated to shop/big 2, shop/web 500m"),
        (["why", "pod/web", "-o", "json"], 0, '"state": "settled"'),
    ],
)
async def test_answers_and_their_exit_codes(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod(policy="RestartContainer"), pod("big", cpu="2"))
    assert await ask(tmp_path, conversation, *arguments) == code
    assert told in capsys.readouterr().out
    assert {method for method, _ in conversation.asked} == {"GET"}


async def test_a_plan_names_what_does_not_follow_the_resize(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A heap of its own stays what it is; what is read at the start is right again where the container restarts."""
    web = pod(policy="RestartContainer")
    web["spec"]["containers"][0] |= {
        "env": [
            {"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx200m"},
            {"name": "BYTES", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
            {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ]
    }
    conversation = Conversation(36, web)
    heap = '"app" does not follow its memory: -Xmx200m in JAVA_TOOL_OPTIONS is the largest Java heap'
    cores = '"app" does not follow its cpu until it restarts: CORES has the limit of the time when it started'
    for arguments, told in ((("--memory", "512Mi"), heap), (("--cpu", "700m"), cores)):
        assert await ask(tmp_path, conversation, "plan", "pod/web", *arguments, "-o", "json") == 0
        lines = msgspec.json.decode(capsys.readouterr().out)["notes"]
        assert [line for line in lines if "does not follow" in line] == [told]
        options = ("--dry-run", "--allow-disruption") if "--memory" in arguments else ("--dry-run",)
        await ask(tmp_path, conversation, "resize", "pod/web", *arguments, *options)
        assert f"note: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["plan", "pod/web", "--memory", "-1Gi"], 2, "-1Gi leaves nothing of the memory request"),
        (["plan", "pod/web"], 2, "one of --cpu, --memory, -f, --from-vpa and --undo is required"),
        (["plan", "pod/web", "--cpu", "fast"], 2, 'invalid value "fast" for --cpu'),
        (["plan", "web", "--cpu", "1"], 2, '"web" is not one of pod/NAME'),
        (["plan", "pod/web", "-f", "/nowhere.yaml"], 2, "/nowhere.yaml: No such file or directory"),
        (["plan", "pod/web", "--cpu", "1", "-c", "db"], 2, 'no container "db"; it has app'),
        (["why", "pod"], 2, "the name of the pod is required: pod/NAME"),
        (["why", "pod/web", "web"], 2, 'unexpected argument "web"'),
        (["why", "-A", "pod/web"], 2, "-A cannot be combined with pod/web"),
        (["why", "pod/none"], 4, "could not find"),
        (["why", "node/none"], 4, 'nodes "none" not found'),
        (["why", "node/none"], 4, "list them:  kubectl get nodes --kubeconfig"),
        (["why", "deploy/web"], 4, "does not serve deployments"),
        (["why", "pod/web", "--context", "other"], 3, "other"),
    ],
)
async def test_what_is_wrong_is_said_on_stderr_without_a_traceback(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(tmp_path, Conversation(36, pod()), *arguments) == code
    captured = capsys.readouterr()
    assert told in captured.err
    assert (captured.out, "Traceback" in captured.err) == ("", False)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--cpu", "700m", "--dry-run"], 0, "1 of 1 pod would be accepted (server dry run)"),
        (["--cpu", "700m", "--dry-run"], 0, "1/1  web  cpu 500m/500m → 700m/700m  accepted after"),
        (["--cpu", "700m", "--dry-run", "-o", "json"], 0, '"state": "accepted"'),
        (["--cpu", "9"], 1, "nothing was changed"),
    ],
)
async def test_resize_begins_only_what_the_plan_allows(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod())
    conversation.documents[f"{PODS}/web/resize"] = pod()
    assert await ask(tmp_path, conversation, "resize", "pod/web", *arguments) == code
    assert told in capsys.readouterr().out
    assert [path for method, path in conversation.asked if method != "GET"] == [f"{PODS}/web/resize"] * (code == 0)


@pytest.mark.parametrize(("more", "written"), [([], 0), (["--allow-disruption"], 1)])
async def test_no_pod_is_ended_for_a_critical_one_unless_that_was_allowed(
    more: list[str], written: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod(spec={"priority": 2_000_000_000}), pod("batch", cpu="3"))
    conversation.documents[f"{PODS}/web/resize"] = pod()
    arguments = ["resize", "pod/web", "--cpu", "2", "--dry-run", *more]
    assert await ask(tmp_path, conversation, *arguments) == 1 - written
    captured = capsys.readouterr()
    assert sum(method != "GET" for method, _ in conversation.asked) == written
    assert ("short of 1 cpu; would end shop/batch" in captured.out) == (not written)
    assert ("add:  --allow-disruption" in captured.err) == (not written)


@pytest.mark.parametrize(
    ("waits", "arguments", "code", "told"),
    [
        (False, [], 0, "no resize waits"),
        (False, ["-o", "json"], 0, "[]"),
        (True, [], 1, "shop        web   n1     deferred   -       1 cpu      Node didn't have enough resource"),
        (True, ["-o", "json"], 1, '"namespace": "shop"'),
        (True, ["-o", "yaml"], 1, "shortBy: 1 cpu"),
    ],
)
async def test_what_waits_anywhere(
    *, waits: bool, arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pending: dict[str, Any] = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
    waiting = pod(cpu="3", allocated="500m", **pending) if waits else pod()
    conversation = Conversation(36, waiting, pod("big", cpu="2"), pod("done", cpu="2", phase="Succeeded"))
    conversation.documents["/api/v1/nodes"] = {"items": [conversation.documents[NODE]]}
    assert await ask(tmp_path, conversation, "why", "-A", *arguments) == code
    out = capsys.readouterr().out
    assert told in out
    assert "big" not in out.splitlines()[0]
    assert sorted(conversation.asked) == [("GET", path) for path in ("/api/v1/nodes", "/api/v1/pods", "/version")]


async def test_what_waits_is_listed_without_the_right_to_see_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "full"}
    conversation = Conversation(36, pod(cpu="3", allocated="500m", conditions=[pending]), forbidden=("/api/v1/nodes",))
    assert await ask(tmp_path, conversation, "why", "--all-namespaces") == 1
    out = capsys.readouterr().out
    assert "deferred   -       -          full" in out
    assert "not read: Nodes of the cluster: pods is forbidden" in out


DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"


def of_a_deployment(*pods: dict[str, Any]) -> Conversation:
    conversation = Conversation(36, *pods)
    conversation.documents[PODS] = {"items": pods}
    selector = {"matchLabels": {"app": "web"}}
    conversation.documents[DEPLOYMENT] = {"spec": {"selector": selector, "template": {"spec": pod()["spec"]}}}
    return conversation


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        ([], 0, "kind: Deployment\nmetadata:\n  name: web\n", "note: pods differ"),
        (["-o", "json"], 0, '"kind": "Deployment"', "the largest is exported"),
        (["--to", "helm"], 0, "resources:\n  requests:\n    cpu: '1'\n    memory: 256Mi\n", "note: "),
        (["--to", "patch"], 0, "spec:\n  template:\n    spec:\n      containers:\n", "note: "),
        (["--drift"], 1, "web-2   app         cpu request   500m       1         1", ""),
        (["--drift", "-o", "json"], 1, '"drifted": true', ""),
        (["--drift", "-o", "yaml"], 1, "drifted: true", ""),
    ],
)
async def test_what_runs_is_exported_or_compared(
    arguments: list[str], code: int, out: str, err: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = of_a_deployment(pod("web-1"), pod("web-2", cpu="1"))
    assert await ask(tmp_path, conversation, "export", "deployment/web", *arguments) == code
    captured = capsys.readouterr()
    assert out in captured.out
    assert err in captured.err
    assert {method for method, _ in conversation.asked} == {"GET"}


async def test_an_export_is_no_drift_from_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "sizes.yaml"
    assert await ask(tmp_path, of_a_deployment(pod("web-1", cpu="1")), "export", "deploy/web") == 0
    manifest.write_text(capsys.readouterr().out)
    against = ["export", "deploy/web", "--drift", "-f", str(manifest)]
    assert await ask(tmp_path, of_a_deployment(pod("web-1", cpu="1")), *against) == 0
    assert f"1 pod runs with the sizes of {manifest}" in capsys.readouterr().out
    assert await ask(tmp_path, of_a_deployment(pod("web-1", cpu="2")), *against) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["deploy/web"], 1, "deployment/web has no running pod"),
        (["deploy/web", "-f", "x.yaml"], 2, "-f needs --drift"),
        (["deploy/web", "--drift", "-f", "/nowhere.yaml"], 2, "/nowhere.yaml: "),
        (["node/n1"], 2, '"node/n1" is not one of pod/NAME'),
    ],
)
async def test_an_export_that_cannot_be_says_why(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(tmp_path, of_a_deployment(), "export", *arguments) == code
    captured = capsys.readouterr()
    assert (captured.out, told in captured.err) == ("", True)


async def test_undo_knows_all_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, Conversation(36, pod()), "resize", "pod/web", "--undo", "--cpu", "1") == 2
    assert await ask(tmp_path, Conversation(36, pod()), "resize", "pod/web", "--undo") == 2
    assert "was not resized by podfit" in capsys.readouterr().err


async def test_a_manifest_may_say_the_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}
    manifest = tmp_path / "deploy.yaml"
    template = {"spec": {"containers": [container]}}
    manifest.write_bytes(msgspec.json.encode({"kind": "Deployment", "spec": {"template": template}}))
    assert await ask(tmp_path, Conversation(36, pod()), "plan", "pod/web", "-f", str(manifest)) == 0
    out = capsys.readouterr().out
    assert "500m/500m → 1/1" in out
    assert 'memory request and limit of "app" stay as they are: a resize removes none' in out


def test_without_a_cluster_the_kubeconfig_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "pod/web", "--kubeconfig", str(tmp_path / "none")]) == 3
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_a_server_that_is_away_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(standalone("test", Access("https://127.0.0.1:9", token="t")))
    assert run(["why", "pod/web", "--kubeconfig", str(path)]) == 4
    assert "no answer from the API server" in capsys.readouterr().err
