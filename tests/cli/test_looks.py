"""How answers look: request and limit, colours where a terminal is, no broken words at 60 columns."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from answers.test_top import PROXY, metrics, quota
from cli.test_questions import ask, kubeconfig
from cli.test_top import shop
from podfit.cli import render
from podfit.cli.app import GROUPS, run, verbs
from podfit.cli.tables import Cell, folded, laid_out
from support.terminal import Seen, in_terminal, podfit

COLOURED = re.compile(r"\x1b\[[0-9;]*[349][0-7]m")
"""Bold letters are no colour."""
GREEN, YELLOW, RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
WORDS = {"fits": GREEN, "deferred": YELLOW, "refused": RED}
EVERYWHERE = "/apis/metrics.k8s.io/v1beta1/pods"
CPU = {"fits": "700m", "deferred": "3", "refused": "9"}


async def shown(
    directory: Path,
    conversation: Conversation,
    *arguments: str,
    columns: int = 120,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Seen:
    async with kubeconfig(directory, conversation) as path:
        command = podfit(*arguments, "--kubeconfig", path)
        return await asyncio.to_thread(in_terminal, command, columns=columns, environment=environment)


def with_documents(conversation: Conversation, documents: dict[str, Any]) -> Conversation:
    conversation.documents |= documents
    return conversation


def limited(**limits: str) -> dict[str, Any]:
    """A Burstable pod."""
    made = pod()
    resources = {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": limits}
    made["spec"]["containers"][0]["resources"] = resources
    made["status"]["containerStatuses"][0] |= {"resources": resources, "allocatedResources": resources["requests"]}
    return made | {"status": made["status"] | {"qosClass": "Burstable"}}


@pytest.mark.parametrize(
    ("cpu", "limits", "told"),
    [
        ("1", {"cpu": "800m"}, "200m/800m → 1/4"),
        (":900m", {"cpu": "800m"}, "200m/800m → 200m/900m"),
        ("300m", {}, "200m → 300m "),
        ("300m:1", {}, "200m/none → 300m/1"),
    ],
)
async def test_a_plan_shows_request_and_limit(
    cpu: str, limits: dict[str, str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await ask(tmp_path, Conversation(36, limited(**limits)), "plan", "pod/web", "--cpu", cpu)
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("verdict", list(WORDS))
async def test_a_terminal_gets_the_colour_of_the_verdict(verdict: str, tmp_path: Path) -> None:
    conversation = Conversation(36, pod(), pod("big", cpu="2"))
    seen = await shown(tmp_path, conversation, "plan", "pod/web", "--cpu", CPU[verdict])
    assert f"{WORDS[verdict]}{verdict}\x1b[0m" in seen.text


@pytest.mark.parametrize("switch", [{"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}])
async def test_a_terminal_that_wants_no_colour(switch: dict[str, str], tmp_path: Path) -> None:
    seen = await shown(tmp_path, Conversation(36, pod()), "plan", "pod/web", "--cpu", "700m", environment=switch)
    assert (seen.code, "\x1b" in seen.text, "fits" in seen.text) == (0, False, True)


@pytest.mark.parametrize("verb", [verb for verb in verbs() if verb not in GROUPS])
@pytest.mark.parametrize("flags", [["--help"], ["--nonsense"]])
def test_no_verb_colours_where_nobody_wants_that(
    verb: str, flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without_colour(tmp_path, monkeypatch)
    run([*verb.split(), *flags])
    told = capsys.readouterr()
    assert (told.out + told.err).strip()
    assert not COLOURED.search(told.out + told.err)


@pytest.mark.parametrize("line", ["status", "down", "image list", "why", "top", "export pod/web"])
def test_no_answer_is_coloured_where_nobody_wants_that(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without_colour(tmp_path, monkeypatch)
    arguments = line.split()
    run([*arguments, *(["--data", str(tmp_path)] if arguments[0] in ("status", "down", "image") else [])])
    told = capsys.readouterr()
    assert (told.out + told.err).strip()
    assert not COLOURED.search(told.out + told.err)


def _without_colour(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR has the last word."""
    for name, value in (("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("KUBECONFIG", str(directory / "none"))):
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("forced", "coloured"), [("", False), ("0", False), ("1", True)])
async def test_a_pipe_is_coloured_only_when_forced(
    forced: str, coloured: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", forced)
    monkeypatch.delenv("NO_COLOR", raising=False)
    await ask(tmp_path, Conversation(36, pod()), "plan", "pod/web", "--cpu", "700m")
    assert (f"{GREEN}fits" in capsys.readouterr().out) == coloured


async def test_a_container_that_is_held_back_all_the_time_is_red(tmp_path: Path) -> None:
    conversation = shop()
    conversation.documents[f"{PROXY}/metrics/cadvisor"] = quota(200, 200)
    seen = await shown(tmp_path, conversation, "top", columns=200)
    assert f"{RED}100 %\x1b[0m" in seen.text
    seen = await shown(tmp_path, shop(), "top", columns=200)
    assert f"{YELLOW}25 %\x1b[0m" in seen.text


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "pod/web", "--cpu", "3"],
        ["plan", "pod/web", "--cpu", "700m", "--memory", "512Mi", "-o", "wide"],
        ["plan", "pod/web", "--cpu", "99999"],
        ["why"],
        ["why", "-A"],
        ["why", "-A", "-o", "wide"],
        ["why", "pod/web"],
        ["why", "node/n1"],
        ["top"],
        ["top", "-A", "-o", "wide"],
        ["allocation", "workload", "-A", "-o", "wide"],
        ["export", "pod/web"],
        ["plan", "web"],
        ["resize", "pod/web", "--cpu", "9"],
    ],
)
async def test_nothing_is_wider_than_a_narrow_terminal_and_no_word_is_broken(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def conversation() -> Conversation:
        waiting = pod(
            cpu="3",
            allocated="500m",
            conditions=[{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}],
        )
        made = Conversation(36, waiting if arguments[0] == "why" else pod(), pod("big", cpu="2"))
        pods = [made.documents[f"{PODS}/{name}"] for name in ("web", "big")]
        items = {"items": [metrics(), metrics("10m", "200Mi", "big")]}
        return with_documents(made, {PODS: {"items": pods}, METRICS: items, EVERYWHERE: items})

    await ask(tmp_path, conversation(), *arguments)
    piped = capsys.readouterr()
    words = {word for word in (piped.out + piped.err).split() if "kubeconfig" not in word and "127.0.0.1" not in word}
    seen = await shown(tmp_path, conversation(), *arguments, columns=60)
    advice = ("next: ", "  see:  ", "  see its ", "fix: ", "  fix: ", "  is it ")
    assert [line for line in seen.lines if len(line) > 60 and not line.startswith(advice)] == []
    told = {word.lower() for word in seen.plain.split()}
    headers = {word for word in words if word.isupper()}  # those of a record's title, and of what is not there
    left_out = columns_left_out(piped.out, seen)
    assert {word for word in words - headers - left_out - {"-"} if word.lower() not in told} == set()


def columns_left_out(piped: str, seen: Seen) -> set[str]:
    """The words of the columns that a narrow terminal says it leaves out."""
    _, _, names = " ".join(seen.plain.split()).partition("left out in 60 columns: ")
    lines, words = piped.splitlines(), set[str]()
    for name in ("NODE", "CPU LIMIT", "MEM LIMIT", "THROTTLED", "CPU REQUEST", "MEM REQUEST"):
        if name in names:
            at = next(line.index(name) for line in lines if name in line)
            words |= {line[at:].split("   ")[0].strip() for line in lines if line[at:].strip()}
    return {word for text in words for word in text.split()}


async def test_a_row_that_is_too_wide_is_a_record(tmp_path: Path) -> None:
    words = ("plan", "pod/web", "--cpu", "700m", "--memory", "512Mi")
    seen = await shown(tmp_path, Conversation(36, pod()), *words, columns=60)
    assert "web\n  node          n1\n  cpu           500m/500m → 700m/700m\n  memory        256Mi/256Mi" in seen.plain
    assert seen.lines[-1].startswith("next: podfit resize pod/web --cpu 700m")


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_the_front_page_is_wrapped_by_words(columns: int, capsys: pytest.CaptureFixture[str]) -> None:
    run([])
    words = capsys.readouterr().out.split()
    seen = in_terminal(podfit(), columns=columns)
    assert seen.text.split() == words
    assert max(map(len, seen.lines)) <= columns


def test_the_width_may_be_named() -> None:
    assert max(map(len, in_terminal(podfit(), columns=120, environment={"COLUMNS": "50"}).lines)) <= 50


def test_a_table_that_fits_is_left_as_it_is() -> None:
    lines = ["".join(cell.text for cell in line) for line in laid_out(("A", "B"), [("1", "two words")], width=20).lines]
    assert lines == ["A   B", "1   two words"]


def test_prose_is_wrapped_within_its_column() -> None:
    rows = [("web", Cell("no room for it on any of these nodes", "bad"))]
    lines = ["".join(cell.text for cell in line) for line in laid_out(("POD", "BECAUSE"), rows, width=32).lines]
    assert lines == ["POD   BECAUSE", "web   no room for it on any of", "      these nodes"]


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    assert folded("see " + "x" * 90, width=60) == ["see", "x" * 90]


def test_amounts_are_shown_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(ask(tmp_path, Conversation(36, pod()), "plan", "pod/web", "--memory", "10Ti"))
    out = capsys.readouterr().out
    assert "memory, requested: 10Ti, allocatable: 8Gi" in out
    assert "10995116277760" not in out


@pytest.mark.parametrize(
    "verb", [["plan", "--cpu", "700m"], ["why"], ["export"], ["resize", "--cpu", "700m", "--dry-run"]]
)
async def test_kind_and_name_may_stand_apart(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for target in (["pod", "web"], ["pods/web"]):
        conversation = Conversation(36, pod())
        conversation.documents[f"{PODS}/web/resize"] = pod()
        assert await ask(tmp_path, conversation, verb[0], *target, *verb[1:]) == 0
        told.append(capsys.readouterr().out.partition(" after")[0].partition("next:")[0])
    assert told[0] == told[1]


def test_a_state_has_one_colour_everywhere() -> None:
    assert {render.judged(word).tone for word in ("fits", "done")} == {render.GOOD}
    assert {render.judged(word).tone for word in ("infeasible", "refused", "failed")} == {render.BAD}
