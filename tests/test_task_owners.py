"""Every task has an owner: it is made by a `TaskGroup`, by a `Supervisor`, or by a function that ends it itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "src" / "podfit", ROOT / "docs" / "tasks.md"
MAKERS = {"create_task", "ensure_future", "run_coroutine_threadsafe"}
OWNER = "net/supervisor.py"


def made(source: str) -> Iterator[int]:
    """Lines that make a task elsewhere than in a `TaskGroup`, which is named `group`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in MAKERS:
            if not (isinstance(node.value, ast.Name) and node.value.id == "group"):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            yield from (node.lineno for name in node.names if name.name in MAKERS)


def test_tasks_are_made_where_the_page_says_and_nowhere_else() -> None:
    files = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if any(made(path.read_text()))}
    section = PAGE.read_text().partition("## Who makes tasks")[2].partition("\n## ")[0]
    assert files - {OWNER} == set(re.findall(r"^\| `(.+?\.py)` \|", section, re.MULTILINE))


def test_a_group_is_a_task_group() -> None:
    """So that the name stands for what it says."""
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "group.create_task" in source:
            assert "asyncio.TaskGroup" in source, path


def test_what_would_be_found() -> None:
    assert list(made("import asyncio\nasyncio.create_task(f())\n")) == [2]
    assert list(made("loop = get()\nloop.create_task(f())\n")) == [2]
    assert list(made("from asyncio import create_task\n")) == [1]
    assert list(made("make = asyncio.ensure_future\n")) == [1]
    assert list(made("async def f(group):\n    group.create_task(g())\n")) == []


def test_every_supervisor_is_watched_by_another_or_by_the_process() -> None:
    """One that nobody watches would hear of a failure and tell nobody."""
    page = PAGE.read_text()
    named = re.compile(r"Supervisor\(\s*f?\"([^\"{]+)|Supervisor, \"([^\"]+)\"")
    names = {
        (match.group(1) or match.group(2)).strip()
        for path in SOURCE.rglob("*.py")
        if str(path.relative_to(SOURCE)) != OWNER
        for match in named.finditer(path.read_text())
    }
    section = page.partition("## Owners")[2].partition("\n## ")[0]
    assert names <= set(re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)), names
