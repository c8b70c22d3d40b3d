"""Names that pages and docstrings cite exist: modules and what is in them, files, functions of files, sections."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "podfit"
FOLDERS = ("src", "tests", "bench", "scripts", "examples")
PAGES = sorted((*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"))
PACKAGES = {path.name for path in SOURCE.iterdir() if path.is_dir()}
OURS = re.compile(
    rf"(?<![\w./$-])(?:podfit\.)?(?P<name>(?:{'|'.join(sorted(PACKAGES))})(?:\.[A-Za-z_]\w*+)++)(?![/-]\w|\()"
)
"""A module of ours by its path in podfit, perhaps with a name inside: `decide.resize.steps`, `core.clock.Clock`."""

SHORT = re.compile(r"`(?P<name>[a-z_]+\.[A-Za-z_]\w*)(?:\(\))?`")
"""A name in a module that is called by its last part: `batches.slow_start`."""

FILE = re.compile(r"(?<![\w./-])(?:\.\./)?(?P<file>(?:[\w-]+/)*\w+\.py)(?::(?P<name>[A-Za-z_][\w.]*))?")
SECTION = re.compile(r"\(§? ?\d{1,2}\.\d{1,2}\)")
OTHER = re.compile(r".*\.(md|py|io|db|reserve|kubeconfig|json|txt|pem|key|__path__)")
"""What looks like a module of ours: groups of the API, and files."""

FIELDS = {"status", "cpu", "resource", "tls"}
"""What has parts in the API, the kernel and Go, and is the name of a module of ours as well."""

PASSED = {
    "test_web.py": "the reader of the tour writes it",
    "larger.py": "the reader of the page on rollouts writes it",
}

ROW = re.compile(r"\b[RV]-\d{3}\b")
ROWS = frozenset(ROW.findall((ROOT / "docs" / "checklist.toml").read_text()))


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a module, a class or a function, with those inside of them."""
    for statement in body:
        yield statement
        for block in ("body", "orelse", "handlers", "finalbody"):
            yield from statements(getattr(statement, block, ()))


def docstrings(tree: ast.Module) -> str:
    """Strings that stand as statements: of modules, classes, functions and constants."""
    return "\n".join(
        node.value.value
        for node in statements(tree.body)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


class Module(NamedTuple):
    """What is looked up of a file. Its tree is not kept: all trees together take 180 MB."""

    names: frozenset[str]
    """What it defines or imports, as `name` and `Class.name`."""
    docstrings: str
    variables: frozenset[str]


@cache
def module(path: Path) -> Module:
    tree = ast.parse(path.read_text())
    return Module(frozenset(_defined(tree)), docstrings(tree), variables(tree))


def names_in(path: Path) -> frozenset[str]:
    return module(path).names


def _defined(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in statements(tree.body) if isinstance(tree, ast.Module) else tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
                yield from (f"{name}.{inner}" for inner in _defined(node))
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)


@cache
def exists(name: str) -> bool:
    """Whether a dotted name leads from podfit to a package, a module, or something in one."""
    path = SOURCE
    parts = name.split(".")
    for index, part in enumerate(parts):
        if (path / part).is_dir():
            path = path / part
            continue
        module = path / f"{part}.py"
        rest = ".".join(parts[index + 1 :])
        if module.is_file():
            return not rest or rest in names_in(module)
        return (path / "__init__.py").is_file() and ".".join(parts[index:]) in names_in(path / "__init__.py")
    return True


@cache
def files() -> dict[str, list[Path]]:
    """Every Python file, by its last name."""
    files: dict[str, list[Path]] = {}
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        files.setdefault(path.name, []).append(path)
    return files


@cache
def parts() -> frozenset[tuple[str, str]]:
    """(folder, module or folder in it), by their last names."""
    return frozenset((path.parent.name, path.stem) for path in SOURCE.rglob("*"))


def problems(text: str, variables: frozenset[str] | None) -> Iterator[str]:
    """What a text cites that is not there; `variables` are those of the module whose docstrings it is."""
    for match in OURS.finditer(text):
        if not OTHER.fullmatch(match["name"]) and not exists(match["name"]):
            yield match["name"]
    for match in FILE.finditer(text):
        same = files().get(match["file"].rpartition("/")[2], [])
        cited = [path for path in same if str(path).endswith(f"/{match['file']}")]
        name = (match["name"] or "").rstrip(".")
        if match["file"] not in PASSED and not any(not name or name in names_in(path) for path in cited):
            yield match[0]
    yield from (row for row in ROW.findall(text) if row not in ROWS)
    if variables is not None:
        yield from SECTION.findall(text)
        yield from _short(text, variables)


def _short(text: str, variables: frozenset[str]) -> Iterator[str]:
    """`module.name` in a docstring, where no module or package of that name has it. Variables and imported modules of
    the same file may be so called.
    """
    for match in SHORT.finditer(text):
        stem, name = match["name"].split(".")
        modules = [path for path in files().get(f"{stem}.py", []) if path.is_relative_to(SOURCE)]
        if stem in PACKAGES | FIELDS or (stem, name) in parts() or OTHER.fullmatch(match["name"]):
            continue
        if modules and not any(name in names_in(path) for path in modules) and stem not in variables:
            yield match["name"]


def variables(tree: ast.Module) -> frozenset[str]:
    return frozenset(
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.arg)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_a_page_names_exists(page: Path) -> None:
    assert list(problems(page.read_text(), None)) == []


def test_what_docstrings_name_exists() -> None:
    told = {
        f"{path.relative_to(ROOT)}: {problem}"
        for path in SOURCE.rglob("*.py")
        if not path.stem.endswith(("_pb2", "_pb2_grpc"))
        for problem in problems(module(path).docstrings, module(path).variables)
    }
    assert told == set()


@pytest.mark.parametrize(
    "text",
    ["asks `decide.fit`", "controllers/base.py:slow_start", "handlers/nowhere.py", "what is recorded (5.6)", "(R-999)"],
)
def test_what_is_not_there_is_told(text: str) -> None:
    assert list(problems(text, frozenset()))


@pytest.mark.parametrize(
    "text",
    [
        "`decide.resize.steps`",
        "core.clock.Clock",
        "controllers/base.py:Controller.reconcile",
        "metrics.k8s.io",
        "(1.36.0)",
    ],
)
def test_what_is_there_is_not(text: str) -> None:
    assert not list(problems(text, frozenset()))
