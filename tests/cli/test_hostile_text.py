"""What a cluster says reaches no terminal raw: neither control codes nor lines of its own, from any verb."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answers.conversation import Conversation, pod
from cli.test_questions import ask
from podfit.cli import render
from podfit.cli.logs import LogFormat, configure
from podfit.cli.tables import Cell

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\rerror: run kubectl delete ns --all\n\u202e\u2066\x7f\u2028end"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def hostile() -> Conversation:
    bad = pod()
    bad["metadata"]["labels"] = {"app": HOSTILE}
    bad["metadata"]["annotations"] = {HOSTILE: HOSTILE}
    ended = {"exitCode": 1, "reason": f"Error{HOSTILE}", "message": HOSTILE}
    waiting = {"reason": "CrashLoopBackOff", "message": HOSTILE}
    for status in bad["status"]["containerStatuses"]:
        status |= {"state": {"waiting": waiting}, "lastState": {"terminated": ended}, "restartCount": 3, "ready": False}
    condition = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": HOSTILE}
    bad["status"]["conditions"] = [*bad["status"].get("conditions", []), condition]
    return Conversation(36, bad)


@pytest.mark.parametrize("output", [(), ("-o", "json")])
@pytest.mark.parametrize(
    "words",
    [
        ("why", "pod/web"),
        ("why", "-n", "shop"),
        ("why", "node/n1"),
        ("why", "vpa/x"),
        ("plan", "pod/web", "--cpu", "700m"),
        ("plan", f"pod/{HOSTILE}", "--cpu", "700m"),
        ("resize", "pod/web", "--cpu", "700m"),
        ("top",),
        ("top", "pod/web"),
        ("recommend", "--watch", "0"),
        ("export", "pod/web"),
        (HOSTILE,),
        ("top", f"--{HOSTILE}"),
    ],
)
async def test_no_verb_prints_a_control_code(
    words: tuple[str, ...], output: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await ask(tmp_path, hostile(), *words, *output)
    out, err = capsys.readouterr()
    assert out + err
    assert not RAW.search(out + err)
    assert not any(line.startswith("error: run kubectl") for line in (out + err).splitlines())


async def test_what_a_container_said_is_still_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await ask(tmp_path, hostile(), "why", "pod/web")
    assert r"\x1b]0;owned\x07" in capsys.readouterr().out


async def test_a_container_in_trouble_fails_the_whole_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = pod("crash")
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off"}
    for status in broken["status"]["containerStatuses"]:
        status |= {"state": {"waiting": waiting}, "ready": False}
    assert await ask(tmp_path, Conversation(36, pod(), broken), "why", "-A") == 1
    assert "CrashLoopBackOff" in capsys.readouterr().out
    homeless = pod("toobig")
    homeless["spec"].pop("nodeName")
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    homeless["status"] = {"phase": "Pending", "conditions": [why]}
    assert await ask(tmp_path, Conversation(36, homeless), "why", "-A") == 1
    assert "0/1 nodes are available" in capsys.readouterr().out
    assert await ask(tmp_path, Conversation(36, pod()), "why", "-A") == 0


PRINTERS: dict[str, Callable[[str], Any]] = {
    "line": render.line,
    "block": render.block,
    "say": render.say,
    "styled": lambda text: render.styled(text, Cell(text, "bad"), then=text),
    "fact": lambda text: render.fact("a", text),
    "entry": lambda text: render.entry("a", text, 3),
    "progress": render.progress,
    "advice": render.advice,
    "error": lambda text: render.error(text, evidence=(text,), fix=(text,)),
    "document": lambda text: render.document({text: [text]}, "json"),
    "table": lambda text: render.table(("A", "B"), [(text, Cell(text, "bad"))]),
}


@pytest.mark.parametrize("name", PRINTERS)
def test_no_way_to_print_lets_a_control_code_through(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    PRINTERS[name](HOSTILE)
    out, err = capsys.readouterr()
    assert not RAW.search(out + err)
    assert "end" in out + err


def test_a_log_line_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Options:
        log_format, verbose = LogFormat.TEXT, 0

    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    configure(Options())
    logging.getLogger("podfit").warning("pod=%s", HOSTILE)
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert not RAW.search(err)
