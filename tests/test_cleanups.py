"""A context manager of the tests cleans up when its body fails, too: what one failed test leaves fails others."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.machine import counted_mounts

TESTS = Path(__file__).parent


def test_what_a_failing_body_leaves_is_cleaned_up() -> None:
    skipping = {
        f"{path.relative_to(TESTS)}:{line}"
        for path in TESTS.rglob("*.py")
        if "contextmanager" in (text := path.read_text())
        for line in skipped(ast.parse(text))
    }
    assert sorted(skipping) == [], "this is left out when the body of the `with` fails: put it into a `finally`"


def skipped(tree: ast.Module) -> Iterator[int]:
    """Lines behind the `yield` of a context manager, assertions apart, that an exception of its body passes by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            "contextmanager" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            yield from _behind(node.body)


def _behind(body: Sequence[ast.stmt]) -> Iterator[int]:
    for number, statement in enumerate(body):
        if isinstance(statement, ast.Try) or not any(isinstance(node, ast.Yield) for node in ast.walk(statement)):
            continue
        if isinstance(statement, ast.With | ast.AsyncWith):
            yield from _behind(statement.body)
        yield from (later.lineno for later in body[number + 1 :] if not isinstance(later, ast.Assert))


def test_what_counts_as_left_out() -> None:
    head = "@contextmanager\ndef made():\n"
    for body in (" yield\n close()", " with x:\n  yield\n  close()", " with x:\n  yield\n close()"):
        assert len(list(skipped(ast.parse(head + body)))) == 1, body
    for body in (" try:\n  yield\n finally:\n  close()", " yield\n assert x", " with x:\n  yield"):
        assert list(skipped(ast.parse(head + body))) == [], body


def test_mounts_of_sessions_beside_this_one_are_not_counted() -> None:
    lines = "\n".join(f"none {place} tmpfs rw 0 0" for place in ("/t/rest/a/disk", "/t/node/b", "/run/x", "/run/netns"))
    assert counted_mounts(lines, "/t/node") == {"/t/node/b", "/run/x"}
    assert counted_mounts(lines, "") == {"/t/rest/a/disk", "/t/node/b", "/run/x"}
