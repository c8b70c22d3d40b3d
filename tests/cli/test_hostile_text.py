"""What a cluster says reaches no terminal raw: neither control codes nor lines of its own, from any verb."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from answers.test_top import VPAS, metrics, with_vpa
from cli.test_questions import ask
from podfit.cli import render
from podfit.cli.app import run
from podfit.cli.logs import LogOptions, configure
from podfit.cli.tables import Cell
from podfit.net.wire import Request, Response

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
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    configure(LogOptions())
    logging.getLogger("podfit").warning("pod=%s", HOSTILE)
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert not RAW.search(err)


FREE = {"reason", "message", "name", "namespace", "nodeName", "image", "uid", "type", "kind", "podRef", "gitVersion"}
"""Fields that a cluster fills with text; a quantity or a time that is none is an answer that is not understood."""
VERBS = (
    ("why",),
    ("why", "-A", "-o", "wide"),
    ("why", "pod/web", "-o", "wide"),
    ("why", "pod/web", "-o", "yaml"),
    ("why", "node/n1", "-o", "wide"),
    ("why", "vpa/web"),
    ("plan", "pod/web", "--cpu", "700m"),
    ("plan", "pod/web", "--cpu", "3", "-o", "wide"),
    ("plan", "pod/web", "--cpu", "9", "-o", "yaml"),
    ("resize", "pod/web", "--cpu", "700m"),
    ("resize", "pod/web", "--cpu", "700m", "--dry-run"),
    ("top",),
    ("top", "-A", "-o", "wide"),
    ("allocation",),
    ("allocation", "workload", "-A", "-o", "wide"),
    ("recommend", "--for", "0"),
    ("recommend", "-A", "--for", "1s", "--interval", "1s", "-o", "wide"),
    ("export", "pod/web"),
    ("export", "pod/web", "-o", "yaml"),
    ("token", "create"),
)


class HostileCluster(Conversation):
    """Any text and label of any answer, and refusals, are hostile at random."""

    def __init__(self, random: Random) -> None:
        super().__init__(36, pod(), pod("big", cpu="2"))
        self._random = random
        pods = [self.documents[f"{PODS}/{name}"] for name in ("web", "big")]
        items = {"items": [metrics(), metrics("10m", "200Mi", "big")]}
        everywhere = "/apis/metrics.k8s.io/v1beta1/pods"
        self.documents |= {PODS: {"items": pods}, METRICS: items, everywhere: items, VPAS: {"items": [with_vpa()]}}

    async def send(self, request: Request) -> Response:
        if self._random.random() < 0.1:
            status = {
                "kind": "Status",
                "code": 403,
                "reason": HOSTILE,
                "message": HOSTILE,
                "details": {"kind": HOSTILE},
            }
            return Response(403, {}, msgspec.json.encode(status))
        response = await super().send(request)
        assert isinstance(response.body, bytes)
        try:
            document = msgspec.json.decode(response.body)
        except msgspec.DecodeError:
            return response
        return Response(response.status, response.headers, msgspec.json.encode(self._spoilt(document)))

    def _spoilt(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            spoilt = {key: self._spoilt(more, key) for key, more in value.items()}
            if field == "metadata" and self._random.random() < 0.3:
                spoilt |= {"labels": {"app": HOSTILE}, "annotations": {HOSTILE: HOSTILE, "podfit.dev/minimum": HOSTILE}}
            if field == "status" and "phase" in value and self._random.random() < 0.5:
                spoilt["conditions"] = [
                    {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": HOSTILE},
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": HOSTILE},
                ]
            return spoilt
        if isinstance(value, list):
            return [self._spoilt(more, field) for more in value]
        if isinstance(value, str) and field in FREE and self._random.random() < 0.15:
            return value + HOSTILE
        return value


async def escapes(
    seed: int, verbs: Sequence[tuple[str, ...]], directory: Path, capsys: pytest.CaptureFixture[str]
) -> Counter[str]:
    """Each verb once, on one hostile cluster."""
    counts = Counter[str]()
    for words in verbs:
        code = await ask(directory, HostileCluster(Random(f"{seed} {words}")), *words)
        out, err = capsys.readouterr()
        assert not RAW.search(out + err), (seed, words)
        assert not any(line.startswith("error: run kubectl") for line in (out + err).splitlines()), (seed, words)
        counts.update({"answers": 1, "that show hostile text": "owned" in out + err, "refused or failed": code != 0})
    here = directory / f"{seed}{HOSTILE}".replace("/", "")
    here.mkdir()
    for words in (("status",), ("down",), ("image", "list"), ("backup", str(here / "b"))):
        await asyncio.to_thread(run, [*words, "--data", str(here)])
        out, err = capsys.readouterr()
        assert not RAW.search(out + err), (seed, words)
        counts.update({"answers": 1, "that show hostile text": "owned" in out + err})
    return counts


async def test_a_hostile_cluster_reaches_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = await escapes(1, VERBS[::4], tmp_path, capsys)
    assert counts["that show hostile text"] > 1


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_many_hostile_clusters_reach_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], figure: Callable[[str, object], None]
) -> None:
    """Escapes: every verb that asks a cluster, and status, down, image list and backup, on 8 clusters whose texts,
    labels, names and refusals hold control codes, forged lines and text that turns round, at random. No raw control
    byte and no forged line is printed.
    """
    counts = Counter[str]()
    for seed in range(8):
        counts += await escapes(seed, VERBS, tmp_path, capsys)
    assert counts["that show hostile text"] > 40
    for name, number in counts.items():
        figure(name, number)
