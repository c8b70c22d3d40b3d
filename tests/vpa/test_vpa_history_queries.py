"""Questions in SQL: each wall by itself, and the process that stands behind all of them."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from podfit.net.system import SystemClock
from podfit.vpa.history.own import tables
from podfit.vpa.history.own.queries import Answer, Asked, ask
from support.eventually import PATIENCE
from support.own_history import DAY, HOUR, compacted, directory, write_journal

BEGIN = 20_000 * DAY
SECRET = "squeamish"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment, and a journal that is being written."""
    made = directory(tmp_path_factory.mktemp("kept") / "history")
    write_journal(made, BEGIN, events=True)
    compacted(made, BEGIN + HOUR)
    write_journal(made, BEGIN + HOUR)
    return made.root


async def asked(history: Path, sql: str, *, rows: int = 100, seconds: float = 20.0, memory: int = 256) -> Answer:
    wanted = Asked(directory=str(history), sql=sql, rows=rows, seconds=seconds, memory=memory)
    return await ask(wanted, SystemClock(), lambda text: None)


async def test_a_question_is_answered_over_segments_and_the_journal(history: Path) -> None:
    answer = await asked(history, "select pod, count(*) as n from usage group by pod order by pod;", rows=1)
    assert (answer.columns, answer.rows, answer.more) == (["pod", "n"], [["web-0", 120]], True)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select * from read_text('{secret}')", "the function read_text may not be used"),
        ("copy (select 1) to '{secret}'", "only one SELECT may be asked"),
        ("attach '{secret}' as x", "only one SELECT may be asked"),
        ("install httpfs", "only one SELECT may be asked"),
    ],
)
async def test_an_attack_is_refused_by_the_process(history: Path, tmp_path: Path, sql: str, why: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    answer = await asked(history, sql.format(secret=secret))
    assert answer == Answer(refused=why)
    assert secret.read_text() == SECRET


@pytest.mark.parametrize(
    "sql",
    [
        "with recursive n as (select 1 as x union all select x + 1 from n) select count(*) from n",
        "select count(*) from range(10000000) a, range(10000000) b, usage c where a.range + b.range = c.cpu - 1e9",
    ],
    ids=["recursion", "cross join"],
)
async def test_a_question_without_end_ends_in_time(history: Path, sql: str) -> None:
    assert await asked(history, sql, seconds=1.0) == Answer(failed="it took more than 1 s")


@pytest.mark.parametrize(
    "sql", ["select repeat('x', 2000000000)", "select list(a.range) from range(500000000) a"], ids=["text", "list"]
)
async def test_a_question_that_needs_more_memory_than_it_may_have_fails(history: Path, sql: str) -> None:
    """Also where the library does not count it: the process may have no more addresses."""
    assert await asked(history, sql) == Answer(failed="it needs more than 256 MiB of memory")


async def test_a_question_and_an_answer_have_bounds(history: Path) -> None:
    assert (await asked(history, "select '" + "x" * 70_000 + "'")).refused == "a question has at most 65536 characters"
    much = await asked(history, "select repeat('x', 1000000) from range(90)")
    assert much.failed == "the answer has more than 64 MiB; select less"


ATTACKS = [
    ("select * from read_text('{secret}')", "disabled by configuration"),
    ("select * from read_blob('{secret}')", "disabled by configuration"),
    ("select * from read_csv('{secret}')", "disabled by configuration"),
    ("select * from read_json('{secret}')", "disabled by configuration"),
    ("select * from read_parquet('{secret}')", "disabled by configuration"),
    ("select * from glob('/etc/*')", "disabled by configuration"),
    ("select * from '{secret}'", "does not exist"),
    ("select * from read_parquet('https://127.0.0.1:1/x.parquet')", "disabled by configuration"),
    ("select * from read_csv('http://127.0.0.1:1/x.csv')", "disabled by configuration"),
    ("copy usage to '{secret}'", "disabled by configuration"),
    ("copy usage to '{segment}' (format parquet)", "disabled by configuration"),
    ("export database '{secret}.d'", "disabled by configuration"),
    ("attach '{secret}.db'", "disabled by configuration"),
    ("install httpfs", "disabled by configuration"),
    ("load httpfs", "disabled through configuration"),
    ("load '{secret}'", "disabled through configuration"),
    ("set enable_external_access = true", "Cannot change"),
    ("set lock_configuration = false", "Cannot change"),
    ("set allowed_paths = ['{secret}']", "Cannot change"),
    ("set memory_limit = '100GB'", "Cannot change"),
    ("set threads = 64", "Cannot change"),
    ("reset enable_external_access", "Cannot change"),
    ("pragma memory_limit = '100GB'", "Cannot change"),
    ("set temp_directory = '{secret}.d'", "Cannot change"),
    ("select getenv('HOME')", "does not exist"),
]


@pytest.fixture(scope="module")
def locked(history: Path) -> duckdb.DuckDBPyConnection:
    opened, segments = tables.connect(), list(history.glob("*.parquet"))
    tables.show(opened, segments)
    tables.lock(opened, segments)
    return opened


@pytest.mark.parametrize(("sql", "why"), ATTACKS, ids=[sql[:40] for sql, _ in ATTACKS])
def test_the_library_itself_opens_nothing_else(
    locked: duckdb.DuckDBPyConnection, history: Path, tmp_path: Path, sql: str, why: str
) -> None:
    """What would hold if a statement passed that should not."""
    secret, (segment,) = tmp_path / "secret", history.glob("*.parquet")
    secret.write_text(SECRET)
    before = segment.read_bytes()
    with pytest.raises(duckdb.Error, match=why):
        locked.execute(sql.format(secret=secret, segment=segment)).fetchall()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert (secret.read_text(), segment.read_bytes()) == (SECRET, before)


CONFINED = """
import os, sys, resource
from podfit.vpa.history.own.queries import Asked, confine
confine(Asked(directory="", sql="", memory=64, seconds=1.0))
sys.stdout.write(f"{resource.getrlimit(resource.RLIMIT_CPU)} {len(os.environ)} ")
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    os.write(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), b"x")
except OSError as error:
    sys.stdout.write(f"{error.errno} ")
try:
    bytearray(4 << 30)
except MemoryError:
    sys.stdout.write("no memory")
"""


def test_its_process_can_write_no_file_and_grow_no_further(tmp_path: Path) -> None:
    words = (sys.executable, "-c", CONFINED, str(tmp_path / "written"))
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={}, timeout=60 * PATIENCE)
    cpu, _, rest = done.stdout.partition(") ")
    assert (cpu, rest.split(" ", 1)[1]) == ("(7, 7", "27 no memory")
    assert (tmp_path / "written").stat().st_size == 0
