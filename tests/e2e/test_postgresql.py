"""A PostgreSQL of the distribution in a container, resized in place under load: examples/services/postgresql.yaml."""

import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from support.postgresql import Database
from support.services import load
from support.up import Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.images, pytest.mark.xdist_group("node")]
RESIZES = 10
MANY_RESIZES = 100


def sizes(seed: int, number: int) -> Iterator[dict[str, dict[str, str]]]:
    """CPU and memory up and down; the memory never below what the server needs."""
    random = Random(seed)
    for _ in range(number):
        cpu, memory = random.randrange(150, 500, 10), random.randrange(192, 256, 8)
        yield {
            "requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"},
            "limits": {
                "cpu": f"{cpu + random.randrange(50, 1000, 10)}m",
                "memory": f"{memory + random.randrange(64, 512, 8)}Mi",
            },
        }


@pytest.fixture
def database(cluster: Up) -> Iterator[Database]:
    load(cluster, "postgresql")
    made = Database(cluster)
    yield made
    cluster.ok("delete", "pod", "postgresql", "clients", "--now", "--ignore-not-found")


def resized_under_load(database: Database, seed: int, number: int) -> int:
    """Rows that were committed meanwhile."""
    database.start()
    database.begin_load()
    rows = 0
    for size in sizes(seed, number):
        database.resize(size)
        rows = database.commits_more(rows)
    committed = database.end_load()
    assert int(database.ask("SELECT count(*) FROM rows")) == committed
    pod = database.up.get("pod", "postgresql")
    (status,) = pod["status"]["containerStatuses"]
    assert (status["restartCount"], status["ready"], status["started"]) == (0, True, True)
    said = database.stop()
    assert "received fast shutdown request" in said, "by the hook; a SIGTERM would be a smart one"
    assert "database system is shut down" in said
    return committed


def test_a_database_is_resized_ten_times_and_loses_nothing(database: Database) -> None:
    assert resized_under_load(database, 15, RESIZES) > RESIZES


@pytest.mark.campaign
@pytest.mark.timeout(400)
def test_a_database_is_resized_all_the_time_and_loses_nothing(
    database: Database, figure: Callable[[str, object], None]
) -> None:
    """PostgreSQL with forty connections that commit rows: its CPU and memory are resized in place 100 times."""
    began = time.monotonic()
    committed = resized_under_load(database, 1, MANY_RESIZES)
    figure("resizes", MANY_RESIZES)
    figure("rows committed and there", committed)
    figure("seconds", round(time.monotonic() - began))
