"""What every test may rely on, and what happens when the machine lacks it.

Markers say what a test needs: `node` (root, containerd, runc, CNI plugins), `kubectl` (1.32 or later), `etcd`,
`images` (of the distribution's services, scripts/setup-images).
Where that is missing the test skips and says why; with `CI=true` it fails instead, so that no check goes missing
unnoticed.
`guest` tests need User-Mode Linux and run inside of it (`support.guest`).
`campaign` tests are left out unless the marker expression asks for them (`make campaign`).
`--campaign PAGE` has their results written into a page.

`PODFIT_GOLDEN_DIR` names another folder of the shape of `tests/golden` to replay instead of it.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from podfit.testing.loop import ThreadsLoop
from support import campaign, etcd, guest, leaks, machine, marked_files, overtime, prometheus, services
from support.eventually import PATIENCE

pytest_plugins = ["support.conformance", "support.unrecorded"]

# A busy machine is no counterexample; a test has 120 seconds. Beside all others a test tries half as many examples.
settings.register_profile("podfit", deadline=None, max_examples=100 if PATIENCE == 1 else 50)
settings.load_profile("podfit")
machine.begin_session()

OLDEST_KUBECTL = (1, 32)
CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin")


@cache
def missing_node() -> str:
    """Why no real node can run here; empty when one can."""
    if os.geteuid() != 0:
        return "not root"
    absent = [name for name in ("containerd", "runc", "nft", "ip") if shutil.which(name) is None]
    if not any(Path(folder, "ptp").exists() for folder in CNI_FOLDERS):
        absent.append("the CNI plugins")
    return f"no {', no '.join(absent)} (scripts/setup-node installs them)" if absent else ""


@cache
def missing_kubectl() -> str:
    """Why the kubectl tests cannot run here; empty when they can."""
    path = shutil.which("kubectl")
    if path is None:
        return "no kubectl on the PATH"
    command = [path, "version", "--client", "-o", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE, check=True)
    version = json.loads(answer.stdout)["clientVersion"]
    found = int(version["major"]), int(version["minor"].rstrip("+"))
    return "" if found >= OLDEST_KUBECTL else f"kubectl is {version['gitVersion']}, 1.32 or later is needed"


REQUIREMENTS: dict[str, Callable[[], str]] = {
    "node": missing_node,
    "kubectl": missing_kubectl,
    "guest": guest.missing_guest,
    "etcd": etcd.missing_etcd,
    "images": services.missing_images,
    "prometheus": prometheus.missing_prometheus,
}


FILED = (*REQUIREMENTS, "campaign")
"""Markers that a file names as text, if its tests have them."""

figure = campaign.figure


@pytest.fixture(scope="session")
def etcd_url() -> Iterator[str]:
    """An etcd that the tests of a session share; each takes a prefix of its own."""
    with etcd.etcd_cluster() as (member,):
        yield member.client


def pytest_addoption(parser: pytest.Parser) -> None:
    campaign.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    page = config.getoption("--campaign")
    if page is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(campaign.Page(page), "campaign-page")
    if not guest.inside():
        config.pluginmanager.register(guest.OnHost(config), "guest-on-host")
    elif guest.REPORTS in os.environ:
        config.pluginmanager.register(guest.InGuest(config, Path(os.environ[guest.REPORTS])), "in-guest")
    leaks.say_where_sockets_are_opened()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """None leaves the decision to others."""
    if collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    return None if marked_files.may_have(collection_path, config.option.markexpr, FILED) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if unnamed := list(marked_files.unnamed(items, FILED)):
        raise pytest.UsageError(f"their files have to say mark.NAME (support/marked_files.py): {unnamed}")
    if PATIENCE != 1:
        for item in items:
            item.add_marker(pytest.mark.timeout(PATIENCE * allowed_seconds(item)), append=False)
    if "campaign" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("campaign")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_runtest_setup(item: pytest.Item) -> None:
    campaign.describe(item)
    for marker, missing in REQUIREMENTS.items():
        reason = missing() if item.get_closest_marker(marker) else ""
        if reason and os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run the {marker} tests: {reason}", pytrace=False)
        if reason:
            pytest.skip(f"{marker}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    overtime.judge(report, allowed_seconds(item))
    return report


def allowed_seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout"))


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A test's clock waits for the threads of its loop."""
    return {"threads": ThreadsLoop}


def pytest_collection_finish() -> None:
    leaks.forget_what_is_there()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if any(item.get_closest_marker(marker) for marker in REQUIREMENTS):
        assert not (left := leaks.find()), left
