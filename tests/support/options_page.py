"""docs/options.md, made from the Structs that declare the options: `python -m support.options_page` writes it."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from podfit.cli.app import GROUPS, VERBS
from podfit.cli.flags import KINDS
from podfit.core.options import Declared, Document, declared

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
HEAD = """# Options

Made from the fields that declare the options (`make figures` writes it anew). `file` is the place in the configuration
file that `--config` names, by upstream's names; flags count more. Durations are written like `1m30s`. What is on
unless told otherwise is turned off by `--no-FLAG`.
"""


def page() -> str:
    """The whole page: a table for each command that takes options."""
    return "\n".join((HEAD, *(line for name, kinds in commands() for line in table(name, kinds)))).rstrip() + "\n"


def commands() -> Iterator[tuple[str, tuple[type[msgspec.Struct], ...]]]:
    """The verbs made by `cli.flags.takes`, and their Structs."""
    verbs = {name: target for name, (target, _) in VERBS.items()}
    verbs |= {
        f"{group} {name}": target for group, (_, members) in GROUPS.items() for name, (target, _) in members.items()
    }
    for name, target in verbs.items():
        module, _, function = target.partition(":")
        if kinds := getattr(getattr(import_module(module), function), KINDS, ()):
            yield name, kinds


def table(name: str, kinds: tuple[type[msgspec.Struct], ...]) -> Iterator[str]:
    yield from (f"## podfit {name}", "", "| flag | file | values | default | |", "|---|---|---|---|---|")
    for kind in kinds:
        document: Document | None = getattr(kind, "document", None)
        with_file = document is not None
        yield from (row(option, with_file=with_file) for option in declared(kind) if option.flag or with_file)
        for fixed in document.fixed if document else ():
            yield f"| | `{fixed.path}` | {msgspec.json.encode(fixed.value).decode()} alone | | {fixed.why} |"
    yield ""


def row(option: Declared, *, with_file: bool) -> str:
    flags = ", ".join(
        f"`--{name}`" if len(name) > 1 else f"`-{name}`" for name in (option.flag, *option.option.also) if name
    )
    bound = option.option.bound
    values = "; ".join(filter(None, (option.unit.name, bound.words if bound else "")))
    cells: tuple[Any, ...] = (
        flags,
        f"`{option.field}`" if with_file and option.path else "",
        values,
        usual(option),
        option.option.help,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def usual(option: Declared) -> str:
    """The default, by the words of the option where it differs from machine to machine."""
    if option.flag == "data" and not option.option.usual:
        return (
            "`/var/lib/podfit-kubelet`" if "kubelet" in option.usual else "`/var/lib/podfit`, without root in your home"
        )
    return option.usual


if __name__ == "__main__":
    PAGE.write_text(page())
