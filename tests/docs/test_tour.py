"""docs/tour.md is true: each of its blocks is written or run, in order, against one simulated cluster.

    ```console     `$ ` begins a command, what follows is what it prints; `...` stands for anything
    ```yaml        a file, named by the comment in its first line; so is ```python, and a later command has to use it

All commands run in one shell, so `export` and `$?` mean what they mean to a reader. What is between the cluster's start
and its end is typed in a pipe, where every character counts, and then into each terminal.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.eventually import PATIENCE
from support.page_examples import (
    GREEN,
    PIPE,
    TERMINALS,
    Command,
    Form,
    Shell,
    amiss,
    blocks,
    commands,
    files,
    without_left_out,
    wrong,
)

NARROW = 60  # columns
TOUR = Path(__file__).parents[2] / "docs/tour.md"
START, IN_A_TEST, END = "A cluster", "In a test", "The end"
AFTERWARDS = Command("kubectl delete pod web --grace-period=1", 'pod "web" deleted...')


def chapters() -> dict[str, list[Command]]:
    texts = re.split(r"^## (.*)$", TOUR.read_text(), flags=re.MULTILINE)[1:]
    return {title: commands(text) for title, text in zip(texts[::2], texts[1::2], strict=True)}


def between(*, test: bool) -> list[Command]:
    """What comes after the start, up to the end; every shell has to know the cluster's kubeconfig."""
    told = chapters()
    begun, *rest = told[START]
    assert " up " in begun.text
    left = [
        example for title in told if title not in (START, END) for example in told[title] if test or title != IN_A_TEST
    ]
    return [*rest, *left, AFTERWARDS]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    home = tmp_path_factory.mktemp("tour")
    reader = Shell(home)
    for name, text in files(TOUR.read_text()).items():
        (home / name).write_text(text)
    begin, end = chapters()[START][:1], chapters()[END]
    try:
        assert not wrong(begin, reader.types(begin))
        yield reader
        assert not wrong(end, reader.types(end))
    finally:
        down = ["podfit", "down", "--data", str(home / "tour")]
        subprocess.run(down, env=reader.environment, capture_output=True, timeout=60 * PATIENCE, check=False)


def test_every_block_is_run_or_used() -> None:
    assert {kind for kind, _ in blocks(TOUR.read_text())} == {"console", "yaml", "python"}
    typed = " ".join(command.text for command in commands(TOUR.read_text()))
    assert [name for name in files(TOUR.read_text()) if name not in typed] == []
    first, *_, test, last = chapters()
    assert (first, test, last) == (START, IN_A_TEST, END)


@pytest.mark.kubectl
@pytest.mark.timeout(180)
def test_the_tour_goes_as_it_says(shell: Shell) -> None:
    typed = between(test=True)
    otherwise = wrong(typed, shell.types(typed, PIPE))
    assert not otherwise, f"the tour says otherwise:\n{otherwise}"


@pytest.mark.kubectl
@pytest.mark.timeout(180)
@pytest.mark.parametrize("form", TERMINALS, ids=str)
def test_the_tour_in_a_terminal(form: Form, shell: Shell) -> None:
    """Every word is there, whatever is folded; none is broken, and only commands to copy are wider."""
    typed = between(test=False)
    told = shell.types(typed, form)
    ours = [(command, said) for command, said in zip(typed, told, strict=True) if command.is_ours]
    otherwise = {}
    for command, said in ours:
        if form.columns == NARROW and command.text.endswith("2>/dev/null"):
            continue  # which columns a table leaves out is told there
        otherwise[command.text] = amiss(form, without_left_out(command.printed, said), said)
    assert {text: words for text, words in otherwise.items() if words} == {}
    assert any(f"{GREEN}fits" in said for _, said in ours) == form.colour
