"""One real cluster for all tests of this folder; afterwards the machine must look as before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.machine import Snapshot
from support.up import Up


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    before = Snapshot.take()
    up = Up(tmp_path_factory.mktemp("cluster"))
    up.start()
    try:
        yield up
    finally:
        answer = up.down()
    assert answer.code == 0, answer.err
    assert Snapshot.take().since(before) == {}


@pytest.fixture
def cluster_dir(tmp_path: Path) -> Iterator[Up]:
    """A data directory for a cluster that the test starts, kills or stops itself."""
    before = Snapshot.take()
    up = Up(tmp_path / "data")
    yield up
    up.down()
    assert Snapshot.take().since(before) == {}
