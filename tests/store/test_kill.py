"""SIGKILL at any moment loses no acknowledged write."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

from podfit.store.sqlite import sqlite_store

WRITER = """
import asyncio, sys
from pathlib import Path
from podfit.store.sqlite import sqlite_store

async def main():
    store = sqlite_store(Path(sys.argv[1]))

    async def write(name):
        for number in range(10_000):
            record = await store.create(f"/{name}/{number}", b"x" * 500)
            print(record.key, record.mod_revision, flush=True)

    await asyncio.gather(*(write(f"{sys.argv[2]}-{n}") for n in range(4)))

asyncio.run(main())
"""


def test_acknowledged_writes_survive_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    moments = random.Random(7)
    acknowledged: dict[str, int] = {}
    for attempt in range(3):
        lines = _write_and_kill(path, f"{attempt}", after=moments.randrange(20, 400))
        acknowledged |= {key.decode(): int(revision) for key, revision in map(bytes.split, lines)}
        assert acknowledged.items() <= asyncio.run(_stored(path)).items()


def _write_and_kill(path: Path, name: str, *, after: int) -> list[bytes]:
    """The acknowledgements of a writer that is killed after so many; a line reaches the pipe whole or not at all."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(after)]
        writer.kill()
        return lines + writer.stdout.readlines()


async def _stored(path: Path) -> dict[str, int]:
    store = sqlite_store(path)
    found = {record.key: record.mod_revision for record in (await store.list("/")).records}
    await store.close()
    return found
