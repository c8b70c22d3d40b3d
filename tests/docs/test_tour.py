"""docs/tour.md is true: each of its blocks is written or run, in order, against a simulated cluster of its own.

    ```console     `$ ` begins a command, what follows is what it prints; `...` stands for anything
    ```yaml        a file, named by the comment in its first line; so is ```python, and a later command has to use it

All commands run in one shell, so `export` and `$?` mean what they mean to a reader.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.terminal import in_terminal

TOUR = Path(__file__).parents[2] / "docs/tour.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- end of command ---"
STEP = f"__code=$?; echo; echo '{MARK}'; (exit $__code)"


@dataclass(frozen=True)
class Command:
    text: str
    printed: str


def blocks() -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in BLOCK.finditer(TOUR.read_text())]


def commands() -> list[Command]:
    found = []
    for kind, text in blocks():
        if kind == "console":
            assert text.startswith("$ ")
            for each in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = each.partition("\n")
                found.append(Command(command, printed))
    return found


def files() -> dict[str, str]:
    written = {}
    for kind, text in blocks():
        if kind in ("yaml", "python"):
            name = text.partition("\n")[0].removeprefix("# ")
            written[name] = text
    return written


def test_every_block_is_run_or_used() -> None:
    assert {kind for kind, _ in blocks()} == {"console", "yaml", "python"}
    typed = " ".join(each.text for each in commands())
    assert [name for name in files() if name not in typed] == []


@pytest.mark.kubectl
@pytest.mark.timeout(180)
def test_the_tour_goes_as_it_says(tmp_path: Path) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "KUBECONFIG"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{ours['PATH']}"
    script = "\n".join(f"{each.text}\n{STEP}" for each in commands())
    try:
        done = subprocess.run(
            ["bash"],
            input=script,
            cwd=tmp_path,
            env=ours | {"HOME": str(tmp_path), "PATH": path},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=170,
            check=False,
        )
    finally:
        down = ["podfit", "down", "--data", str(tmp_path / "tour")]
        subprocess.run(down, env=ours | {"PATH": path}, capture_output=True, timeout=60, check=False)
    told = done.stdout.split(f"\n{MARK}\n")[:-1]
    wrong = [
        f"$ {each.text}\n{said}" for each, said in zip(commands(), told, strict=True) if not _fits(each.printed, said)
    ]
    assert not wrong, "the tour says otherwise:\n" + "\n".join(wrong)


@pytest.mark.kubectl
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("columns", "switch"), [(60, {"FORCE_COLOR": "1"}), (120, {"NO_COLOR": "1"})])
def test_the_tour_in_a_terminal(columns: int, switch: dict[str, str], tmp_path: Path) -> None:
    """Every word is there, whatever is folded; none is broken, and only commands to copy are wider."""
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    script = "\n".join(f"{each.text}\n{STEP}" for each in commands())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(tmp_path), "PATH": path, **switch}
    try:
        seen = in_terminal(["bash"], columns=columns, cwd=tmp_path, stdin=script, environment=environment)
    finally:
        down = ["podfit", "down", "--data", str(tmp_path / "tour")]
        subprocess.run(down, env=os.environ | {"PATH": path}, capture_output=True, timeout=60, check=False)
    told = seen.plain.split(f"\n{MARK}\n")[:-1]
    ours = [
        (each, said)
        for each, said in zip(commands(), told, strict=True)
        if each.text.startswith(("podfit", "kubectl podfit")) and " up " not in each.text
    ]
    assert [(each.text, _absent(each.printed, said)) for each, said in ours if _absent(each.printed, said)] == []
    assert [
        line for _, said in ours for line in said.splitlines() if len(line) > columns and not line.startswith("next: ")
    ] == []
    assert ("\x1b[32mfits" in seen.text) == ("FORCE_COLOR" in switch)


def _absent(expected: str, said: str) -> set[str]:
    """Words of the page that a terminal does not show; headers of a title and what is not there may be missing."""
    words = {word for line in expected.splitlines() for piece in line.split("...") for word in piece.split()[1:-1]}
    return {word for word in words if not word.isupper() and word != "-"} - set(said.split())


def _fits(expected: str, said: str) -> bool:
    pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, said.strip(), re.DOTALL) is not None
