"""How a page's examples are shown: in a pipe, and in terminals of two widths, each with and without colour."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.eventually import PATIENCE
from support.terminal import COLOUR, Seen, in_terminal

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- end of command ---"
STEP = f"__code=$?; echo; echo '{MARK}'; (exit $__code)"
ADVICE = ("next: ", "fix: ", "  see: ", "  see its ")
"""Lines that end with a command to copy are never folded."""
GREEN = "\x1b[32m"


class Form(NamedTuple):
    """No columns are a pipe."""

    columns: int = 0
    colour: bool = False

    def __str__(self) -> str:
        return f"{self.columns}-{'colour' if self.colour else 'plain'}" if self.columns else "pipe"

    def shown(self, command: Sequence[str], *, stdin: str, environment: Mapping[str, str], cwd: Path) -> Seen:
        """What a command prints, and its exit code; in a pipe its stderr as well, where that is one stream."""
        switch = {} if self.colour else {"NO_COLOR": "1"}
        if self.columns:
            told = dict(environment) | switch
            return in_terminal(command, columns=self.columns, cwd=cwd, stdin=stdin, environment=told)
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "KUBECONFIG"))}
        done = subprocess.run(
            command,
            input=stdin,
            cwd=cwd,
            env=ours | dict(environment),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=110 * PATIENCE,
            check=False,
        )
        return Seen(done.stdout, done.returncode)


PIPE = Form()
TERMINALS = [Form(60, colour=True), Form(120, colour=False)]
"""Each width once, and with and without colour: neither changes the other (cli/test_looks.py)."""
FORMS = [PIPE, *TERMINALS]


class Command(NamedTuple):
    """As it is typed, and what the page says that it prints."""

    text: str
    printed: str

    @property
    def is_ours(self) -> bool:
        return self.text.startswith(("podfit", "kubectl podfit"))


class Shell:
    """A reader's home, where podfit is on the PATH, and what `search` has."""

    def __init__(self, home: Path, *, search: Sequence[Path] = (), **variables: str) -> None:
        self.home = home
        path = os.pathsep.join(map(str, (*search, Path(sys.executable).parent, os.environ["PATH"])))
        self.environment = {"HOME": str(home), "PATH": path, **variables}

    def types(self, commands: Sequence[Command], form: Form = PIPE) -> list[str]:
        """What each of them prints, typed one after the other into one shell; what a terminal colours is coloured."""
        script = "\n".join(f"{command.text}\n{STEP}" for command in commands)
        seen = form.shown(["bash"], stdin=script, environment=self.environment, cwd=self.home)
        told = seen.text.split(f"\n{MARK}\n")[:-1]
        assert len(told) == len(commands), seen.text
        return told


def blocks(page: str) -> list[tuple[str, str]]:
    """Each block's language and its text."""
    return [(match[1], match[2]) for match in BLOCK.finditer(page)]


def commands(page: str) -> list[Command]:
    """Of blocks of a console, where `$ ` begins a command and what follows is what it prints."""
    found = []
    for kind, text in blocks(page):
        if kind == "console":
            assert text.startswith("$ ")
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                found.append(Command(command, printed))
    return found


def files(page: str) -> dict[str, str]:
    """What a page has its reader write, by the name in the comment of its first line."""
    return {
        text.partition("\n")[0].removeprefix("# "): text for kind, text in blocks(page) if kind in ("yaml", "python")
    }


def wrong(typed: Sequence[Command], told: Sequence[str]) -> str:
    """What a pipe shows otherwise."""
    pairs = zip(typed, told, strict=True)
    return "\n".join(f"$ {pair.text}\n{said}" for pair, said in pairs if not fits(pair.printed, said))


def fits(expected: str, said: str) -> bool:
    """`...` stands for anything, a line of it for any number of lines, none too."""
    pattern = re.escape(expected.strip()).replace(re.escape("...\n"), "(.*\n)?").replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, said.strip(), re.DOTALL) is not None


def absent(expected: str, said: str) -> set[str]:
    """Words of the page that a terminal does not show; headers of a title and what is not there may be missing.

    Beside `...` a word may be a part of one, and what stands behind a colon may begin a line instead.
    """
    words: set[str] = set()
    for line in expected.splitlines():
        pieces = line.split("...")
        for number, piece in enumerate(pieces):
            found = piece.split()
            words.update(found[number > 0 : len(found) - (number < len(pieces) - 1)])
    shown = {word.rstrip(":") for word in said.split()}
    return {word for word in words if not word.isupper() and word != "-" and word.rstrip(":") not in shown}


def without_left_out(expected: str, said: str) -> str:
    """The expected table without the columns that a narrow terminal says it leaves out."""
    names = re.findall(r"[A-Z][A-Z ]+", " ".join(said.partition("left out in ")[2].split()))
    lines = expected.splitlines()
    top = next((number for number, line in enumerate(lines) if all(name in line for name in names)), 0)
    for name in names:
        at = lines[top].index(name)
        end = next((at + gap.end() for gap in re.finditer(r" {3,}", lines[top][at:])), None)
        rows = [number for number in range(top, len(lines)) if not at or lines[number][:at].endswith("  ")]
        for number in rows:  # what stands below a table is prose
            lines[number] = lines[number][:at] + (lines[number][end:] if end else "")
    return "\n".join(lines)


def amiss(form: Form, expected: str, said: str) -> list[str]:
    """What a terminal shows otherwise: words that are missing, lines that are too wide, colours that should not be."""
    plain = COLOUR.sub("", said)
    wide = [line for line in plain.splitlines() if len(line) > form.columns and not line.startswith(ADVICE)]
    missing = absent(expected, plain)
    unwanted = ["coloured"] * ("\x1b[" in said and not form.colour)
    return [*wide, *sorted(missing), *unwanted]
