"""What pages of the documentation tell to type is accepted, and the README's five minutes go as they stand."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from podfit.cli.app import program, verbs
from podfit.cli.examples import EXAMPLES
from support.terminal import in_terminal

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "podfit" in path.read_text())
PROGRAM = r"^[#$] (?:.*\| )?(?:\.venv/bin/|kubectl )?podfit "
COMMAND = re.compile(PROGRAM + r"(?P<words>[a-z-]+ [^|>&\n]*|[a-z-]+$)", re.MULTILINE)
FIVE = re.compile(r"^## Five minutes$(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)


def typed(path: Path) -> list[list[str]]:
    """The podfit commands of a page, without comments behind them."""
    text = path.read_text().replace("\\\n", " ")
    return [shlex.split(found["words"], comments=True) for found in COMMAND.finditer(text)]


def accepted(words: list[str]) -> None:
    """Raises what the parser of command lines has against it."""
    program().parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_of_a_page_are_accepted(path: Path) -> None:
    for words in typed(path):
        if "..." not in words:
            accepted(words)


def test_there_are_commands_to_look_at() -> None:
    assert sum(len(typed(path)) for path in PAGES) > 25


@pytest.mark.parametrize(
    "command", [example.command for verb in verbs() for example in EXAMPLES.get(verb, ())], ids=lambda text: text
)
def test_examples_are_accepted(command: str) -> None:
    accepted(shlex.split(command.removeprefix("source <(").removesuffix(")"))[1:])


def readme_script(data: Path) -> str:
    """The README's commands as they stand, but for where the cluster is."""
    section = FIVE.search(README)
    assert section is not None
    blocks = re.findall(r"^```console\n(.*?)^```$", section["text"], re.MULTILINE | re.DOTALL)
    text = "".join(blocks).replace(".venv/bin/podfit", "podfit")
    here = f"--data {data}"
    text = text.replace("podfit up --detach", f"podfit up --detach --node simulated --port 0 {here}")
    text = text.replace("podfit down", f"podfit down {here}")
    return "set -e\n" + re.sub(r"^# ", "", text, flags=re.MULTILINE)


README = (ROOT / "README.md").read_text()


@pytest.mark.kubectl
@pytest.mark.timeout(120)
@pytest.mark.parametrize("columns", [60, 120])
def test_the_five_minutes_of_the_readme(columns: int, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(tmp_path), "PATH": path}
    script = readme_script(tmp_path / "data")
    script = script.replace("set -e", "set -e; trap 'echo code $? at $BASH_COMMAND' ERR")
    try:
        seen = in_terminal(["bash"], columns=columns, cwd=tmp_path, stdin=script, environment=environment)
    finally:
        down = ["podfit", "down", "--data", str(tmp_path / "data")]
        subprocess.run(down, env=os.environ | environment, capture_output=True, timeout=60, check=False)
    assert seen.code == 0, seen.text
    assert 'restarts "app"' in " ".join(seen.plain.split())
    assert "200m/800m → 1/" in seen.plain
    assert "nothing is outstanding" in seen.plain
    ours = seen.plain[seen.plain.index("cluster v1.36") :]
    assert [line for line in ours.splitlines() if len(line) > columns and not line.startswith("next: ")] == []
