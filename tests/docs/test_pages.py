"""What pages of the documentation tell to type is accepted, and the README's five minutes go as they stand."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podfit.cli.app import program, verbs
from podfit.cli.examples import EXAMPLES
from support.eventually import PATIENCE
from support.page_examples import GREEN, PIPE, TERMINALS, Form, Shell, amiss
from support.terminal import COLOUR

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "podfit" in path.read_text())
PROGRAM = r"^[#$] (?:.*\| )?(?:\.venv/bin/|kubectl )?podfit "
COMMAND = re.compile(PROGRAM + r"(?P<words>[a-z-]+ [^|>&\n]*|[a-z-]+$)", re.MULTILINE)
FIVE = re.compile(r"^## Five minutes$(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)


def typed(path: Path) -> list[list[str]]:
    """The podfit commands of a page, without comments behind them."""
    text = path.read_text().replace("\\\n", " ")
    return [shlex.split(match["words"], comments=True) for match in COMMAND.finditer(text)]


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


README = (ROOT / "README.md").read_text()
HERE = "--data data --port 0"


def five_minutes() -> str:
    """The README's commands as they stand, but for where the cluster is."""
    section = FIVE.search(README)
    assert section is not None
    blocks = re.findall(r"^```console\n(.*?)^```$", section["text"], re.MULTILINE | re.DOTALL)
    text = re.sub(r"^# ", "", "".join(blocks).replace(".venv/bin/podfit", "podfit"), flags=re.MULTILINE)
    return text.replace("podfit down", "podfit down --data data")


def typed_into(shell: Shell, script: str, form: Form) -> str:
    """What it shows; each command has to succeed."""
    script = f"set -e; trap 'echo code $? at $BASH_COMMAND' ERR\n{script}"
    seen = form.shown(["bash"], stdin=script, environment=shell.environment, cwd=shell.home)
    assert seen.code == 0, seen.text
    return seen.text


def as_told(text: str, form: Form) -> None:
    """What the README leads its reader to expect, as wide and as coloured as the terminal wants it."""
    plain = COLOUR.sub("", text)
    ours = text[text.index("cluster v1.36") :]
    for told in ('restarts "app"', "200m/800m → 1/4", "nothing is outstanding"):
        assert amiss(form, told, ours) == []
    assert 'restarts "app"' in " ".join(plain.split())
    assert (f"{GREEN}fits" in text) == form.colour


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Somebody's home, where nothing runs when all is over."""
    reader = Shell(tmp_path_factory.mktemp("readme"))
    yield reader
    down = ["podfit", "down", "--data", "data"]
    subprocess.run(
        down, cwd=reader.home, env=reader.environment, capture_output=True, timeout=60 * PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def begun(shell: Shell) -> Iterator[str]:
    """A simulated cluster that the README's first commands have started; what is to be typed on it."""
    first, middle, last = _three_parts()
    here = f"{HERE} --node simulated"
    typed_into(shell, first.replace("podfit up --detach", f"podfit up --detach {here}"), PIPE)
    yield middle
    typed_into(shell, last, PIPE)


def _three_parts() -> tuple[str, str, str]:
    """Start, what comes between, and end."""
    script = five_minutes()
    start, stop = script.index("kubectl --context podfit apply"), script.index("podfit down")
    return script[:start], script[start:stop], script[stop:]


@pytest.mark.kubectl
@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", TERMINALS, ids=str)
def test_the_five_minutes_of_the_readme(form: Form, shell: Shell, begun: str) -> None:
    try:
        as_told(typed_into(shell, begun, form), form)
    finally:
        typed_into(shell, "kubectl --context podfit delete pod web --ignore-not-found --grace-period=1", PIPE)


@pytest.mark.node
@pytest.mark.kubectl
@pytest.mark.timeout(120)
def test_the_five_minutes_on_a_real_node(tmp_path: Path) -> None:
    """Root gets containers: the commands as they stand, and the container that they tell of has its size."""
    shell, form = Shell(tmp_path), Form(120, colour=True)
    script = five_minutes().replace("podfit up --detach", f"podfit up --detach {HERE} --eviction-hard ''")
    try:
        text = typed_into(shell, script, form)
    finally:
        down = ["podfit", "down", "--data", "data"]
        subprocess.run(
            down, cwd=tmp_path, env=shell.environment, capture_output=True, timeout=60 * PATIENCE, check=False
        )
    as_told(text, form)
    assert "real" in text[: text.index("pod/web created")]
    assert '{"limits":{"cpu":"800m","memory":"64Mi"},"requests":{"cpu":"200m","memory":"64Mi"}}' in text
