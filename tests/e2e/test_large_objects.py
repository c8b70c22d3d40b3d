"""Many large objects: what they cost the server while they are written, listed and watched."""

import http.client
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.bounded import Figures, Victim, bounded

MAPS = "/api/v1/namespaces/default/configmaps"
MIB = 2**20
LARGE = MIB - 1024  # of data: a ConfigMap has 1 MiB at most
Figure = Callable[[str, object], None]


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    with bounded(tmp_path / "cluster") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


def connected(victim: Victim) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection("127.0.0.1", victim.port, context=victim.tls(), timeout=120)


def write(victim: Victim, count: int, size: int, chance: random.Random, name: str = "m") -> None:
    """So many ConfigMaps with so many bytes of data each."""
    connection = connected(victim)
    for number in range(count):
        text = f"{chance.getrandbits(64):016x}" * (size // 16)
        made = {"metadata": {"name": f"{name}{number}"}, "data": {"a": text}}
        connection.request("POST", MAPS, json.dumps(made), {"content-type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 201, said[:500]
        victim.requests += 1
    connection.close()


def read_lines(victim: Victim, path: str, lines: int) -> int:
    """So many events of a watch; the bytes they took."""
    connection = connected(victim)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200
    size = sum(len(answer.readline()) for _ in range(lines))
    connection.close()
    victim.requests += 1
    return size


def list_all(victim: Victim, size: int, *, times: int) -> None:
    """Read and thrown away, as it is larger than a test should hold."""
    for _ in range(times):
        connection = connected(victim)
        connection.request("GET", MAPS)
        answer = connection.getresponse()
        read, last = 0, b""
        while piece := answer.read(MIB):
            read, last = read + len(piece), piece
        connection.close()
        victim.requests += 1
        assert answer.status == 200
        assert read >= size
        assert last.endswith(b"]}\n")


def course(victim: Victim, count: int, size: int, seed: int) -> Iterator[Figures]:
    """Written, listed by three, watched from the beginning and from a revision."""
    chance, total, megabytes = random.Random(seed), count * size, count * size / MIB
    before = json.loads(victim.ask("GET", f"{MAPS}?limit=1").body)["metadata"]["resourceVersion"]
    yield victim.measure("written", lambda: write(victim, count, size, chance), stored_mib=stored(count, size))
    yield victim.measure(f"listed, {megabytes:.0f} MB, 3 times", lambda: list_all(victim, total, times=3))
    yield victim.measure("watched from the beginning", lambda: read_lines(victim, f"{MAPS}?watch=1", count))
    since = f"{MAPS}?watch=1&resourceVersion={before}"
    yield victim.measure("watched since before", lambda: read_lines(victim, since, count))
    chosen = f"{since}&labelSelector=a!%3Db"
    yield victim.measure("watched since before by a selector", lambda: read_lines(victim, chosen, count))


def stored(count: int, size: int) -> float:
    """MiB that the server needs for them: their bytes, and a record of each."""
    return count * size / MIB * 1.1 + count * 4 / 1024


def check(figures: Figures, stored_mib: float, figure: Figure) -> None:
    figure(
        figures.attack,
        f"turn {figures.turn_ms:.0f} ms, second client p99 {figures.p99_ms:.0f} ms, "
        f"grew {figures.peak_mib:.0f} MiB, kept {figures.kept_mib:.0f} MiB;",
    )
    kept = stored_mib if figures.attack == "written" else 0.0
    figures.check(peak_mib=256 + kept, kept_mib=64 + kept)


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("count", "size"), [(1000, LARGE), (10_000, 64)])
def test_many_objects_many_times(victim: Victim, count: int, size: int, figure: Figure) -> None:
    """ConfigMaps, 1,000 of 1 MiB and 10,000 small ones, are written, listed and watched, with and without a selector,
    while a second client asks. No turn of the loop over 100 ms of CPU; beside what is stored the process grows by
    256 MiB at most and keeps 64 MiB at most.
    """
    for figures in course(victim, count, size, seed=1):
        check(figures, stored(count, size), figure)


def test_large_objects(victim: Victim, figure: Figure) -> None:
    for figures in course(victim, 24, LARGE, seed=2):
        check(figures, stored(24, LARGE), figure)
