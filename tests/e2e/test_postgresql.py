"""A PostgreSQL of the distribution in a container, resized in place under load: examples/services/postgresql.yaml."""

import json
import re
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from support.services import example, free_port, load
from support.up import Up, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.images, pytest.mark.xdist_group("node")]
CLIENTS = 40
RESIZES = 10
MANY_RESIZES = 100
PERIOD = 100_000
MI = 1 << 20
KERNEL = """
cd /sys/fs/cgroup
if [ -e cpu.max ]; then cat cpu.max memory.max; else
cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us memory/memory.limit_in_bytes; fi
"""


class Database:
    """The example's pod, and another that commits rows: each of its clients keeps one connection."""

    def __init__(self, up: Up) -> None:
        self.up, self.port = up, free_port()

    def start(self) -> None:
        (pod,) = example("postgresql", 5432, self.port)
        self.up.apply(pod)
        self.up.ok("wait", "--for=condition=Ready", "pod/postgresql", "--timeout=60s")
        self.ask("CREATE TABLE rows (client int, number bigserial PRIMARY KEY)")

    def ask(self, statement: str) -> str:
        return self.up.ok("exec", "postgresql", "-c", "server", "--", "psql", "--tuples-only", "-A", "-c", statement)

    def begin_load(self) -> None:
        script = "echo 'INSERT INTO rows (client) VALUES (:client_id)' >/tmp/one.sql; exec pgbench --no-vacuum"
        options = (
            f"--host=127.0.0.1 --port={self.port} --username=postgres -c {CLIENTS} -T 3600 -f /tmp/one.sql postgres"
        )
        container = {
            "name": "clients",
            "image": "localhost/postgresql:distribution",
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", f"{script} {options}"],
            "resources": {"limits": {"cpu": "300m"}},
        }
        spec = {"restartPolicy": "Never", "containers": [container]}
        self.up.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "clients"}, "spec": spec})
        self.commits_more(0)

    def commits_more(self, than: int) -> int:
        """The number of rows, once there are more."""
        deadline = time.monotonic() + 30
        while (rows := int(self.ask("SELECT count(*) FROM rows"))) <= than:
            assert time.monotonic() < deadline, self.up.ok("logs", "clients")
        return rows

    def end_load(self) -> int:
        """What the clients were told to be committed. They end by the signal that their own time limit gives them."""
        self.up.ok("exec", "clients", "--", "sh", "-c", "kill -ALRM 1")
        ended = self.up.pod_when("clients", lambda pod: pod["status"]["phase"] not in ("Pending", "Running"), "ended")
        said = self.up.ok("logs", "clients")
        assert ended["status"]["phase"] == "Succeeded", said
        assert "aborted" not in said
        assert "number of failed transactions: 0 " in said
        found = re.search(r"number of transactions actually processed: (\d+)", said)
        assert found is not None, said
        return int(found[1])

    def resize(self, size: dict[str, dict[str, str]]) -> None:
        """Until the node says that it is done, and the kernel does."""
        change = {"spec": {"containers": [{"name": "server", "resources": size}]}}
        self.up.ok("patch", "pod", "postgresql", "--subresource", "resize", "-p", json.dumps(change))
        self.up.pod_when("postgresql", lambda pod: settled(pod) and given(pod) == size, f"got {size}")
        said = self.up.ok("exec", "postgresql", "-c", "server", "--", "sh", "-c", KERNEL).split()
        cpu, memory = int(size["limits"]["cpu"][:-1]), int(size["limits"]["memory"][:-2])
        assert said == [str(cpu * PERIOD // 1000), str(PERIOD), str(memory * MI)]

    def stop(self) -> str:
        """What it says when its pod is deleted."""
        with self.up.follows("postgresql", "server") as log:
            log.readline()
            self.up.ok("delete", "pod", "postgresql")
            return log.read()


def given(pod: dict[str, Any]) -> object:
    return pod["status"]["containerStatuses"][0]["resources"]


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
