"""The command line's manners: help, version, exit codes, messages."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from podfit import __version__
from podfit.cli import exits
from podfit.cli.app import IMAGE_HELP, VERBS, run
from podfit.process.data.release import described
from support.eventually import PATIENCE


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == exits.DONE
    assert capsys.readouterr().out == f"{described()}\n"
    assert re.fullmatch(
        rf"podfit {re.escape(__version__)} \((commit [0-9a-f]{{12}}(, changed)?|commit unknown)\)", described()
    )


@pytest.mark.parametrize("verb", [[], ["up"], ["down"], ["status"], ["demo"], ["image"], ["image", "load"]])
def test_every_verb_has_help(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*verb, "--help"]) == exits.DONE
    assert "Usage:" in capsys.readouterr().out


def test_the_front_page_names_every_verb_and_loads_nothing_for_it() -> None:
    script = "import sys; from podfit.cli.app import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for name, text in [*((name, text) for name, (_, text) in VERBS.items()), ("image", IMAGE_HELP)]:
        assert any(line.split() == [name, *text.split()] for line in done.stdout.splitlines()), name
    assert not {"cyclopts", "rich", "msgspec", "yaml", "asyncio"} & set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "fly"),
        (["up", "--nope"], "--nope"),
        (["up", "--port", "x"], "port"),
        (["up", "--node", "moon"], "moon"),
        (["up", "--nodes", "0"], "at least one node"),
        (["up", "--make-room=evict"], 'invalid value "evict" for --make-room'),
        (["up", "--legacy", "everything"], "unknown legacy switch: everything"),
        (["up", "--feature-gates", "NoSuch=true"], "unrecognized feature gate: NoSuch"),
        (["up", "--feature-gates", "InPlacePodVerticalScaling=false"], "locked to true"),
    ],
)
def test_wrong_usage_is_exit_2_with_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == exits.USAGE
    text = capsys.readouterr().err
    assert message in text
    assert "Traceback" not in text


def test_status_without_a_cluster_is_exit_1(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]  # fixtures
    assert run(["status", "--data", str(tmp_path)]) == exits.REFUSED
    assert "no cluster is running" in capsys.readouterr().out
    assert run(["status", "--data", str(tmp_path), "-o", "json"]) == exits.REFUSED
    assert '"running": false' in capsys.readouterr().out


def test_questions_load_nothing_that_they_do_not_need() -> None:
    """The table of all kinds takes longer to import than a question to ask (bench/commands.py)."""
    verbs = "podfit.cli.questions.why, podfit.cli.questions.plan, podfit.cli.questions.top, podfit.cli.questions.resize"
    heavy = {"cryptography", "podfit.api.registry", "rich", "uvloop"}
    code = f"import sys, {verbs}\nprint(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60 * PATIENCE, check=True
    )
    assert done.stdout.split() == []


def test_why_loads_no_rules_of_the_api_and_looks_for_no_garbage_meanwhile(tmp_path: Path) -> None:
    """They check what is written, for `plan`. A collection is 20 ms of the 300 that it has."""
    code = f"""
import gc, sys
from podfit.cli import app
gc.set_threshold(*app.COLLECT)
gc.callbacks.append(lambda phase, told: print("collected", told))
app.run(["why", "--kubeconfig", "{tmp_path}/none"])
print(*(name for name in sys.modules if name.startswith(("podfit.apiserver", "podfit.decide.resize.validation"))))
gc.callbacks.clear()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60 * PATIENCE, check=True
    )
    assert done.stdout.split() == []


def test_version_is_a_verb_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == exits.DONE
    told = capsys.readouterr().out
    assert run(["version"]) == exits.DONE
    assert capsys.readouterr().out == told
    assert run(["version", "-o", "json"]) == exits.DONE
    answer = json.loads(capsys.readouterr().out)
    assert answer["version"] == __version__
    assert answer["commit"] in told
