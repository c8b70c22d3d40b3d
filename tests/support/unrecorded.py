"""A pytest plugin: tests whose file is not in the folder that `PODFIT_GOLDEN_DIR` names are deselected, and named.

pytest-xdist's workers deselect, and tell the one that reports.
"""

from typing import Any

import pytest

from support.golden import golden_folder, is_recorded

NAMES = pytest.StashKey[set[str]]()
KEY = "unrecorded"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NAMES] = set()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = [item for item in items if any(not is_recorded(mark.args[0]) for mark in item.iter_markers("golden"))]
    if out:
        config.hook.pytest_deselected(items=out)
        config.stash[NAMES].update(item.nodeid for item in out)
        items[:] = [item for item in items if item not in out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    names = session.config.stash[NAMES]
    if (told := getattr(session.config, "workeroutput", None)) is not None:
        told[KEY] = sorted(names)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    node.config.stash[NAMES].update(getattr(node, "workeroutput", {}).get(KEY, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if names := config.stash[NAMES]:
        terminalreporter.section("not replayed")
        terminalreporter.write_line(f"{golden_folder()} has not what these replay:")
        for name in sorted(names):
            terminalreporter.write_line(f"  {name}")
