"""The tables of exit codes in docs/ are those of --help, and each outcome of each verb has its code.

On failure stdout is empty or a whole document.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from answers.conversation import METRICS, PODS, Conversation, pod
from answers.test_top import metrics
from cli.test_questions import kubeconfig
from podfit.cli.app import run
from podfit.cli.examples import EXAMPLES, EXIT_CODES

DOCS = Path(__file__).parents[2] / "docs"
VERBS = ("plan", "resize", "why", "top", "allocation", "recommend", "export")
SIZED = ["pod/web", "--cpu", "700m"]
DRIFTED = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: i, resources: {requests: {cpu: 1m}}}]}
"""
OUTCOMES: dict[tuple[str, int], list[str]] = {
    ("plan", 0): SIZED,
    ("plan", 1): ["pod/web", "--cpu", "9"],
    ("resize", 0): ["pod/web", "--cpu", "500m"],
    ("resize", 1): ["pod/web", "--cpu", "9"],
    ("why", 0): ["pod/web"],
    ("why", 1): ["pod/late"],
    ("top", 0): ["pod/web"],
    ("allocation", 0): ["namespace"],
    ("allocation", 2): ["rack"],
    ("allocation", 4): ["-n", "nowhere"],
    ("recommend", 0): ["pod/web", "--for", "1s"],
    ("recommend", 1): ["pod/web", "--for", "0"],
    ("export", 0): ["pod/web"],
    ("export", 1): ["pod/web", "--drift", "-f", "drifted.yaml"],
} | {
    (verb, code): [about, *(["--cpu", "700m"] if verb in ("plan", "resize") else [])]
    for verb in VERBS
    if verb != "allocation"
    for code, about in ((2, "gizmo/web"), (4, "pod/none"))
}


OTHERS: dict[tuple[str, int], list[str]] = {
    ("status", 1): ["--data", "empty"],
    ("down", 0): ["--data", "empty"],
    ("backup", 2): ["empty"],
    ("backup", 3): ["new.backup", "--data", "empty"],
    ("restore", 3): ["none.backup", "--data", "empty"],
    ("image load", 2): [],
    ("image load", 3): ["drifted.yaml", "--data", "empty"],
    ("image list", 3): ["--data", "empty"],
    ("token create", 2): ["--ttl", "0"],
    ("token create", 3): ["--kubeconfig", "none"],
    ("history", 2): ["gizmo/web"],
    ("history", 3): ["pod/web", "--data", "empty"],
    ("history query", 2): ["select 1", "--rows", "0", "--history-dir", "empty"],
    ("history query", 3): ["select 1", "--data", "empty"],
    ("completion", 0): ["bash"],
    ("completion", 2): ["tcsh"],
    ("version", 0): [],
    ("version", 2): ["-o", "xml"],
    ("up", 2): ["--nodes", "0"],
    ("kubelet", 2): ["--node-ip", "127.0.0.1"],
    ("controllers", 2): ["--controllers", "none"],
    ("scheduler", 2): ["--config", "empty"],
    ("apiserver", 2): ["--legacy", "none"],
    ("metrics-server", 2): ["--metric-resolution", "1s"],
    ("vpa recommender", 2): ["--recommender-interval", "soon"],
    ("vpa updater", 2): ["--min-replicas", "0"],
    ("vpa admission-controller", 2): ["--register-by-url"],
    ("vpa admission-controller", 3): ["--tls-cert-file", "c", "--tls-private-key", "k", "--client-ca-file", "ca"],
}
"""What costs nothing to try of the verbs that are about a machine."""


def rows(page: str) -> dict[str, list[str]]:
    section = (DOCS / page).read_text().partition("## Exit codes\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| ([\w -]+) \| (.*) \|$", section, re.MULTILINE)
    return {verb: cells.split(" | ") for verb, cells in found}


def test_the_pages_and_the_help_agree() -> None:
    told = {verb: {row[0]: row[2:] for row in EXIT_CODES[verb]} for verb in EXIT_CODES}
    assert set(told) == set(EXAMPLES)
    assert rows("answers.md").keys() == set(VERBS)
    assert rows("answers.md") | rows("processes.md") == {
        verb: [codes.get(code, "-") for code in "01234"] for verb, codes in told.items()
    }


@pytest.mark.parametrize(("verb", "code"), list(OTHERS), ids=str)
def test_verbs_about_a_machine_have_their_codes(
    verb: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drifted.yaml").write_text(DRIFTED)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run([*verb.split(), *OTHERS[verb, code]]) == code
    told = capsys.readouterr()
    if code > 1:
        assert (told.out, told.err.count("error: ")) == ("", 1)
    if code == 2:
        assert told.err.endswith(f"  see:  podfit {verb} --help\n")


def test_every_code_of_the_table_but_that_of_a_missing_kubeconfig_is_tried() -> None:
    told = {
        (verb, code) for verb, cells in rows("answers.md").items() for code, cell in enumerate(cells) if cell != "-"
    }
    assert told - {(verb, 3) for verb in VERBS} == set(OUTCOMES)


def conversation() -> Conversation:
    waits = [{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}]
    late = pod("late", cpu="3", allocated="500m", conditions=waits)
    made = Conversation(36, pod(), late)
    made.documents |= {
        PODS: {"items": [pod(), late]},
        METRICS: {"items": [metrics()]},
        "/apis/metrics.k8s.io/v1beta1/pods": {"items": [metrics()]},
    }
    return made


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
@pytest.mark.parametrize(("verb", "code"), list(OUTCOMES), ids=str)
async def test_each_outcome_has_its_code_and_a_whole_answer_or_none(
    verb: str, code: int, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drifted.yaml").write_text(DRIFTED)
    monkeypatch.chdir(tmp_path)
    async with kubeconfig(tmp_path, conversation()) as path:
        asked = [verb, *OUTCOMES[verb, code], "-o", form, "--kubeconfig", path]
        assert await asyncio.to_thread(run, asked) == code
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    if code in (2, 4):
        assert (told.out, told.err.count("error: ")) == ("", 1)
    elif form != "text":
        read: Any = json.loads if form == "json" else yaml.safe_load
        assert isinstance(read(told.out), dict)


@pytest.mark.parametrize("verb", VERBS)
def test_no_kubeconfig_is_3(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [verb, *OUTCOMES[verb, 0], "-o", "json", "--kubeconfig", str(tmp_path / "none")]
    assert run(asked) == 3
    assert capsys.readouterr().out == ""
