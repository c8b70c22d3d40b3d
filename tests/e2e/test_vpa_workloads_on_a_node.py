"""Workloads with a VPA on a real node, in place: what grows, asks for too much, runs out of memory, starts, serves.

Memory runs out in the pod's own cgroup only, under its limit.
"""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from podfit.kubelet.cgroup.detect import detect
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout
from support.eventually import eventually
from support.machine import Snapshot
from support.postgresql import Database
from support.services import example, free_port, load
from support.up import PODFIT, Up, run, settled
from support.vpa_processes import deployment, logs, vpa, vpa_processes

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(120)]
MI = 1 << 20
OOM_PIECES, PIECE = 30, 4 * MI
PAGE = 4096
IDLE = "trap 'exit 0' TERM; while :; do sleep 1; done"


def grows(pieces: int, pause: float) -> str:
    """So many times 4 MiB, in the shell that is the container's first process."""
    piece = r'eval "v$i=\$(head -c 4194304 /dev/zero | tr \"\\0\" a)"'
    return f"i=0; while [ $i -lt {pieces} ]; do {piece}; i=$((i+1)); sleep {pause}; done; {IDLE}"


def sizes(cpu: str, memory: str, most: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most}}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    before = Snapshot.take()
    cluster = Up(tmp_path_factory.mktemp("vpa"))
    cluster.start("--no-vpa")
    with vpa_processes(cluster):
        yield cluster
    cluster.down()
    assert Snapshot.take().since(before) == {}


@pytest.fixture(scope="module")
def begun(up: Up) -> Up:
    """Everything that the short tests look at, begun together: most of their time they wait for usage to be told."""
    apply_pair(up, 39, 0.8)
    up.apply(deployment("oom", grows(OOM_PIECES, 0.01), sizes("50m", "64Mi", "64Mi")), vpa("oom"))
    return up


@pytest.fixture(scope="module")
def database(begun: Up) -> Database:
    return loaded(begun)


class Workload:
    """The only pod of a Deployment, as it is now."""

    def __init__(self, up: Up, name: str) -> None:
        self._up, self._name = up, name
        self.uid = self.pod()["metadata"]["uid"]

    def pod(self) -> dict[str, Any]:
        def look() -> list[dict[str, Any]]:
            pods: list[dict[str, Any]] = json.loads(
                self._up.ok("get", "pods", "-l", f"app={self._name}", "-o", "json")
            )["items"]
            return pods

        return eventually(look, within=30, what=f"{self._name} has a pod")[0]

    def until(self, holds: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any]:
        """The status of its container, once that holds; never another pod's."""

        def look() -> dict[str, Any] | None:
            pod = self.pod()
            assert pod["metadata"]["uid"] == self.uid, "not evicted"
            return next(iter(pod["status"].get("containerStatuses", ())), None)

        what = f"the container of {self._name} is as it should be"
        return eventually(look, holds, within=seconds, what=what, told=partial(logs, self._up), every=0.2)

    def kernel(self) -> tuple[int, int]:
        """Bytes that the kernel counts of its container, and those that it allows."""
        pod = self.pod()
        layout = cgroup_layout(DataDir(self._up.root))
        identity = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
        path = layout.container(self.uid, pod["status"]["qosClass"], identity)
        values = detect(layout).cgroups.read_container(path)
        assert values.memory_usage is not None
        assert values.memory_limit is not None
        return values.memory_usage, values.memory_limit


def limit(status: dict[str, Any]) -> int:
    """Bytes of memory that its status says."""
    return Quantity.parse(status.get("resources", {}).get("limits", {}).get("memory", "0")).value()


def cpu_limit(container: dict[str, Any]) -> str:
    return str(container.get("resources", {}).get("limits", {}).get("cpu"))


def is_running(status: dict[str, Any]) -> bool:
    return "running" in status["state"]


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def forget(up: Up, *names: str) -> None:
    for name in names:
        up.ok("delete", name, f"vpa/{name.partition('/')[2]}", "--wait=true")
    for name in names:
        up.ok("wait", "--for=delete", "pod", "-l", f"app={name.partition('/')[2]}", "--timeout=60s", timeout=70)


def apply_pair(up: Up, pieces: int, pause: float) -> None:
    up.apply(deployment("grows", grows(pieces, pause), sizes("50m", "40Mi", "150Mi")), vpa("grows"))
    up.apply(deployment("idles", IDLE, sizes("1", "600Mi", "600Mi")), vpa("idles"))


def resized_pair(up: Up, pieces: int) -> tuple[int, int]:
    """Bytes that the kernel allows: one container grows beyond its first limit, the other needs next to nothing."""
    growing, idle = Workload(up, "grows"), Workload(up, "idles")
    first = growing.until(is_running, 20), idle.until(is_running, 20)

    def look() -> tuple[int, int]:
        """Bytes that the one uses and that the other may use; neither was started again meanwhile."""
        now = growing.until(is_running, 1), idle.until(is_running, 1)
        assert [status["restartCount"] for status in now] == [0, 0]
        return growing.kernel()[0], idle.kernel()[1]

    eventually(
        look,
        lambda seen: seen[0] >= pieces * 4 * MI and seen[1] <= 100 * MI,
        within=pieces + 60,
        what="one has grown, the other was made smaller",
        told=partial(logs, up),
        every=0.5,
    )
    last = growing.until(is_running, 1), idle.until(is_running, 1)
    allowed = growing.kernel()[1], idle.kernel()[1]
    assert [status["restartCount"] for status in last] == [0, 0]
    assert [status["containerID"] for status in last] == [status["containerID"] for status in first]
    said = limit(last[0]), limit(last[1])
    assert all(0 <= most - kernel < PAGE for most, kernel in zip(said, allowed, strict=True)), (said, allowed)
    forget(up, "deployment/grows", "deployment/idles")
    return allowed


def loaded(up: Up) -> Database:
    """A StatefulSet with a VPA, and forty clients that commit rows."""
    load(up, "postgresql")
    made = Database(up, replicated=True)
    made.start()
    up.apply(vpa("postgresql", "StatefulSet"))
    made.begin_load()
    return made


def resized_database(database: Database, seconds: float) -> tuple[int, int]:
    """Rows that were committed, and resizes, until it was resized and so long at least."""
    up, began, rows = database.up, time.monotonic(), 0
    while (pod := up.get("pod", database.pod))["metadata"]["generation"] == 1 or time.monotonic() < began + seconds:
        rows = database.commits_more(rows)
        assert time.monotonic() < began + seconds + 60, logs(up)
    pod = up.pod_when(database.pod, settled, "settled")
    committed = database.end_load()
    assert int(database.ask("SELECT count(*) FROM rows")) == committed
    assert pod["metadata"]["uid"] == database.uid
    (status,) = pod["status"]["containerStatuses"]
    assert (status["restartCount"], status["ready"]) == (0, True)
    assert status["resources"]["requests"] != {"cpu": "200m", "memory": "256Mi"}
    up.ok("delete", "pod/clients")
    forget(up, "statefulset/postgresql")
    return committed, pod["metadata"]["generation"] - 1


def test_vpa_raises_an_oom_killed_container_before_its_backoff_is_over(begun: Up) -> None:
    workload = Workload(begun, "oom")
    raised = workload.until(lambda status: is_running(status) and limit(status) > 128 * MI, 30)
    eventually(
        lambda: workload.kernel()[0],
        lambda used: used >= OOM_PIECES * PIECE,
        within=30,
        what="the container has all that it takes",
    )
    now = workload.until(is_running, 1)
    why = run(PODFIT, "why", "vpa/oom", "--kubeconfig", str(begun.kubeconfig))
    assert now["restartCount"] == raised["restartCount"] <= 2
    killed = raised["lastState"]["terminated"]
    assert killed["reason"] == "OOMKilled"
    if raised["restartCount"] == 2:
        assert seconds_between(killed["finishedAt"], raised["state"]["running"]["startedAt"]) < 10
    assert "memory" in why.out
    forget(begun, "deployment/oom")


@pytest.mark.images
def test_vpa_resizes_a_database_under_load_that_keeps_its_connections(database: Database) -> None:
    committed, resizes = resized_database(database, 0)
    assert committed > 0
    assert resizes > 0


def test_vpa_lets_one_grow_and_takes_from_another_in_place(begun: Up) -> None:
    grown, shrunk = resized_pair(begun, 39)
    assert grown > 156 * MI
    assert shrunk < 100 * MI


@pytest.mark.images
def test_vpa_boosts_the_start_of_java_and_ends_it_in_place(up: Up) -> None:
    boosting, service = example("java", 1099, free_port())
    up.apply(boosting)
    load(up, "java")
    up.apply(service)
    up.ok("wait", "--for=create", "pod", "-l", "app=java", "--timeout=30s")
    java = Workload(up, "java")
    first = java.pod()
    assert (first["metadata"]["generation"], cpu_limit(first["spec"]["containers"][0])) == (1, "1")
    calm = java.until(lambda status: status["ready"] and cpu_limit(status) == "100m", 60)
    assert calm["restartCount"] == 0
    assert java.pod()["metadata"]["uid"] == first["metadata"]["uid"]
    forget(up, "deployment/java")


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_vpa_grows_and_shrinks_many_times(up: Up, figure: Callable[[str, object], None]) -> None:
    """On a node with containerd, five times: a Deployment whose memory grows to 1 to 2.4 times its limit at a random
    pace, and one that asks for far too much. Both end at what their VPAs recommend, resized in place, not restarted.
    """
    dice, found = Random(17), []
    for _ in range(5):
        pieces = dice.randint(39, 90)
        apply_pair(up, pieces, dice.uniform(0.4, 0.8))
        found.append(resized_pair(up, pieces))
    figure("MiB that the kernel allows, grown", " ".join(str(grown // MI) for grown, _ in found))
    figure("shrunk from 600", " ".join(str(shrunk // MI) for _, shrunk in found))


@pytest.mark.campaign
@pytest.mark.images
@pytest.mark.timeout(400)
def test_vpa_resizes_a_database_for_minutes(up: Up, figure: Callable[[str, object], None]) -> None:
    """A StatefulSet of PostgreSQL with forty connections that commit rows, and a VPA, for two minutes: it is resized
    in place, no connection is lost, and every row is there that was committed.
    """
    committed, resizes = resized_database(loaded(up), 120)
    figure("resizes", resizes)
    figure("rows committed and there", committed)
