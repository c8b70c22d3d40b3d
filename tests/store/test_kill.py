"""SIGKILL at any moment loses no acknowledged write."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from podfit.store.sqlite import sqlite_store

WRITER = """
import asyncio, sys
from pathlib import Path
from podfit.store.sqlite import sqlite_store

path, run = Path(sys.argv[1]), sys.argv[2]

def say(record, number):
    # In one piece even when Python does not buffer: print() would write each word by itself.
    sys.stdout.write(f"{record.key} {record.mod_revision} {number}\\n")
    sys.stdout.flush()

async def count(store, counter):
    record = await store.get(counter) or await store.create(counter, b"0")
    while True:
        number = int(record.value) + 1
        record = await store.update(counter, b"%d" % number, expected=record.mod_revision)
        say(record, number)
        unique = await store.create(f"{counter}/{run}/{number}", b"x" * 500)
        say(unique, -1)
        if number % 50 == 0:
            await store.compact(store.revision - 20)

async def main():
    store = sqlite_store(path)
    await asyncio.gather(*(count(store, f"/counter-{n}") for n in range(4)))

asyncio.run(main())
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("runs", [6, pytest.param(60, marks=pytest.mark.campaign)])
def test_acknowledged_writes_survive_sigkill(tmp_path: Path, runs: int) -> None:
    """60 times: SIGKILL of a process in which four writers write to one SQLite store, after 1 to 400 writes. Whatever
    was acknowledged is there, and nothing goes back.
    """
    path = tmp_path / "store.db"
    moments = random.Random(7)
    uniques: dict[str, int] = {}
    counters: dict[str, int] = {}
    newest = 0
    for run in range(runs):
        for key, revision, number in _write_and_kill(path, f"{run}", after=moments.randrange(1, 400)):
            newest = max(newest, int(revision))
            if int(number) < 0:
                uniques[key.decode()] = int(revision)
            else:
                counters[key.decode()] = int(number)
        reached, stored = asyncio.run(_stored(path))
        assert reached >= newest
        assert uniques.items() <= {key: made for key, (made, _) in stored.items()}.items()
        for counter, acknowledged in counters.items():
            assert int(stored[counter][1]) - acknowledged in (0, 1), "at most the write in flight may have gone through"


def _write_and_kill(path: Path, run: str, *, after: int) -> list[list[bytes]]:
    """The acknowledgements of a writer that is killed after so many; a line reaches the pipe whole or not at all."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), run], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(after)]
        writer.kill()
        return [line.split() for line in lines + writer.stdout.readlines()]


async def _stored(path: Path) -> tuple[int, dict[str, tuple[int, bytes]]]:
    store = sqlite_store(path)
    records = (await store.list("/")).records
    await store.close()
    return store.revision, {record.key: (record.mod_revision, record.value) for record in records}
