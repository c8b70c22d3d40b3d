"""The completion scripts, and podfit as a plugin of kubectl."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podfit.cli import exits
from podfit.cli.app import VERBS, run
from podfit.process.data.release import described


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -F"), ("zsh", "#compdef podfit"), ("fish", "complete -c")]
)
def test_a_script_knows_every_verb(shell: str, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == exits.DONE
    script = capsys.readouterr().out
    assert mark in script
    assert [verb for verb in (*VERBS, "image") if verb not in script] == []


def test_bash_completes_verbs_options_and_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "bash"]) == exits.DONE
    script = tmp_path / "podfit.bash"
    script.write_text(capsys.readouterr().out)
    assert _completed(script, "podfit", "ex") == ["export"]
    assert _completed(script, "podfit", "export", "--dr") == ["--drift"]
    assert _completed(script, "podfit", "export", "--to", "ku") == ["kustomize"]


def _completed(script: Path, *words: str) -> list[str]:
    typed = " ".join(words)
    ask = f'source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _podfit; echo "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.split()


def test_no_other_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == exits.USAGE
    assert "tcsh" in capsys.readouterr().err


@pytest.mark.kubectl
def test_kubectl_finds_podfit() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["kubectl", "podfit", "--version"]
    done = subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{described()}\n"), done.stderr
