"""Running the tests marked `guest` where they have to run: in the User-Mode-Linux guest, a host of cgroup v2 only.

One boot serves a whole session. When the first of them is due, all are handed to a pytest in the guest, in the same
order; it writes each report to a file that both see, and the reports are told here as if the test had run here. So
selection, summary, `-x` and row marks work as they do for every other test.

    host    pytest ──▶ scripts/guest pytest NODEIDS ──▶ guest
            told   ◀── serialised reports, one a line ◀──┘
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
REPORTS = "PODFIT_GUEST_REPORTS"
STEP = 0.02


def inside() -> bool:
    """Whether this is the guest."""
    return os.environ.get("PODFIT_IN_GUEST") == "1"


@cache
def missing_guest() -> str:
    """Why no guest can run here; empty when one can, or when this is it."""
    if inside():
        return ""
    if os.geteuid() != 0:
        return "not root"
    ready = shutil.which("linux.uml") and (CHECKOUT / ".guest/ptrace.so").exists()
    return "" if ready else "no User-Mode Linux (scripts/setup-guest installs it)"


class InGuest:
    """In the guest: writes every report down."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._path = config, path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a") as file:
            file.write(json.dumps(data) + "\n")


class OnHost:
    """On the host: starts the guest when it is needed, and tells what it reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder = Path()  # made for the guest
        self._lines: Iterator[dict[str, Any]] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if item.get_closest_marker("guest") is None or missing_guest():
            return None
        if self._lines is None:
            self._lines = self._run([test.nodeid for test in item.session.items if test.get_closest_marker("guest")])
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, self._lines):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_sessionfinish(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            shutil.rmtree(self._folder)

    def _reports(self, item: pytest.Item, lines: Iterator[dict[str, Any]]) -> Iterator[pytest.TestReport]:
        for data in lines:
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
            if report.skipped and isinstance(report.longrepr, list):
                report.longrepr = tuple(report.longrepr)  # JSON has no tuples, and pytest insists on one
            if report.nodeid != item.nodeid:
                yield self._failure(item, f"the guest reported {report.nodeid} instead")
                return
            yield report
            if report.when == "teardown":
                return
        yield self._failure(item, f"the guest ended before this test did:\n{self._log.read_text()[-8000:]}")

    def _failure(self, item: pytest.Item, text: str) -> pytest.TestReport:
        return pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed", longrepr=text, when="call"
        )

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _run(self, nodeids: list[str]) -> Iterator[dict[str, Any]]:
        """What the guest writes, as it writes it; ends with the guest."""
        self._folder = Path(tempfile.mkdtemp(prefix="podfit-guest-tests."))
        path = CHECKOUT / ".guest" / f"reports-{os.getpid()}"
        path.write_text("")
        command = [
            "setpriv",
            "--pdeathsig",
            "TERM",
            str(CHECKOUT / "scripts/guest"),
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-m",
            "guest or campaign",
            *nodeids,
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=CHECKOUT, stdout=log, stderr=subprocess.STDOUT, env=os.environ | {REPORTS: str(path)}
            )
        try:
            yield from _follow(path, self._process)
        finally:
            path.unlink()


def _follow(path: Path, process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        rest = ""
        while True:
            ended = process.poll() is not None
            *lines, rest = (rest + file.read()).split("\n")
            yield from map(json.loads, lines)
            if ended:
                return
            with suppress(subprocess.TimeoutExpired):
                process.wait(STEP)
