"""Commands that an answer advises reach the cluster, the namespace and the directory that the question was about."""

import re
import shlex
from pathlib import Path

import pytest

from answers.conversation import PODS, Conversation, pod
from cli.test_questions import ask
from cli.test_resize import workshop
from podfit.answers.facts.commands import Commands
from podfit.cli.app import run
from podfit.client.kubeconfig import Access
from podfit.client.kubeconfig_edit import standalone
from podfit.process.data.data_dir import DataDir


def advised(text: str) -> list[list[str]]:
    """The kubectl and podfit commands of an output, as a shell reads them."""
    found = re.findall(r"(?:next: |fix:  |\?  |:  |: )((?:kubectl|podfit) .+)$", text, re.MULTILINE)
    return [shlex.split(line) for line in found]


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1] if name in command else ""


def in_team(conversation: Conversation) -> Conversation:
    """The same objects in another namespace than the context's."""
    there = {path.replace("/shop", "/team"): document for path, document in conversation.documents.items()}
    conversation.documents |= there
    return conversation


async def test_next_is_about_the_same_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, in_team(Conversation(36, pod())), "plan", "pod/web", "--cpu", "200m", "-n", "team") == 0
    (command,) = advised(capsys.readouterr().out)
    assert command[:5] == ["podfit", "resize", "pod/web", "--cpu", "200m"]
    assert (option(command, "--namespace"), option(command, "--kubeconfig")) == ("team", str(tmp_path / "kubeconfig"))


async def test_what_would_be_used_anyway_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    arguments = ["plan", "pod/web", "--cpu", "200m", "-n", "shop", "--context", "test"]
    assert await ask(tmp_path, Conversation(36, pod()), *arguments) == 0
    assert advised(capsys.readouterr().out) == [["podfit", "resize", "pod/web", "--cpu", "200m"]]


def test_a_context_that_is_not_the_current_one_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    text = standalone("test", Access("https://127.0.0.1:9", token="t")).decode()
    file.write_text(text.replace("current-context: test", "current-context: production"))
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert run(["why", "pod/web", "--context", "test"]) == 4
    (command,) = advised(capsys.readouterr().err)
    assert command == ["kubectl", "cluster-info", "--context", "test"]


@pytest.mark.parametrize(
    ("arguments", "document", "verb"),
    [
        (["why", "pod/none"], {}, "api-resources"),
        (["why", "pod/web"], {f"{PODS}/web": 401}, "auth"),
        (["why", "pod/web", "-n", "nowhere"], {}, "get"),
    ],
)
async def test_what_kubectl_is_asked_reaches_the_same_cluster(
    arguments: list[str], document: dict[str, int], verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod())
    conversation.documents |= document
    assert await ask(tmp_path, conversation, *arguments) == 4
    (command,) = advised(capsys.readouterr().err)
    assert command[:2] == ["kubectl", verb]
    assert option(command, "--kubeconfig") == str(tmp_path / "kubeconfig")


async def test_advice_about_a_template_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = workshop()
    shop.documents["/apis/apps/v1/namespaces/shop/deployments/web"]["status"] = {"observedGeneration": 1, "replicas": 5}
    await ask(tmp_path, shop, "plan", "deployment/web", "--cpu", "1", "--also-template")
    (command,) = advised(capsys.readouterr().out)
    assert command[:4] == ["kubectl", "rollout", "status", "deployment/web"]
    assert option(command, "--kubeconfig") == str(tmp_path / "kubeconfig")


def test_words_are_quoted_for_a_shell() -> None:
    commands = Commands(context="my cluster", kubeconfig="/tmp/a b/$HOME")
    assert shlex.split(commands.podfit("resize", "pod/web")) == [
        "podfit",
        "resize",
        "pod/web",
        "--context",
        "my cluster",
        "--kubeconfig",
        "/tmp/a b/$HOME",
    ]


def test_a_start_is_advised_for_the_directory_that_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "--data", str(tmp_path / "my data")]) == 1
    assert advised(capsys.readouterr().out) == [["podfit", "up", "--data", str(tmp_path / "my data")]]
    assert run(["image", "list", "--data", str(tmp_path / "my data")]) == 3
    assert advised(capsys.readouterr().err) == [["podfit", "up", "--data", str(tmp_path / "my data")]]


def test_the_usual_directory_needs_no_option() -> None:
    assert DataDir.at(None).command("up", "--port", "0") == "podfit up --port 0"
