"""`podfit history` and `podfit history query`: what they show, in each form, and what they say when it is not there."""

import io
import json
import sys
import time
from pathlib import Path

import duckdb
import pytest

from podfit.cli.app import run
from podfit.cli.questions.history import sparkline
from podfit.vpa.history.own.journal import JournalWriter
from podfit.vpa.history.own.records import ContainerRecord, UsageRecord
from support.own_history import HOUR, compacted, directory, write_journal

NOW = int(time.time())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The last two hours of two pods; the first of them is a segment."""
    made = directory(tmp_path / "data" / "history")
    write_journal(made, NOW - 2 * HOUR, events=True)
    compacted(made, NOW - HOUR)
    write_journal(made, NOW - HOUR, minutes=59)
    return tmp_path / "data"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["history", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_it_shows_usage_and_marks(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "pod/web-0", "--since", "3h", "--data", str(data))
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("pod web-0  container app  Deployment/web: since ")
    assert lines[0].endswith(", a column is 3m")
    labels = [line.split()[0] for line in lines[1:]]
    assert labels == ["cpu", "memory", "throttled", "marks", "target", "resized", "oom"]
    assert len(lines[1].split()[1]) == 60
    assert "peak" in lines[1]
    assert lines[4].strip().startswith("marks")
    assert {letter for letter in lines[4][12:72] if letter != " "} == {"r", "R", "O"}
    assert lines[6].endswith("cpu 150m:300m, memory 64Mi:256Mi")
    assert lines[7].endswith("with 64Mi")


def test_a_workload_has_all_its_pods(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "deploy", "web", "--since", "2h", "--data", str(data), "-o", "json")
    told = json.loads(out)
    assert (code, [container["pod"] for container in told["containers"]]) == (0, ["web-0", "web-1"])
    points = told["containers"][0]["points"]
    assert len(points) == 60
    assert {"cpu", "cpuPeak", "memory", "memoryPeak", "throttled", "time"} == points[1].keys()


def test_each_sample_as_a_sheet_and_as_columns(
    data: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["history", "pod/web-1", "--data", str(data), "-o", "csv"]) == 0
    sheet = capsysbinary.readouterr().out.decode().splitlines()
    assert sheet[0].startswith("time,kind,namespace,pod,container,workload,")
    assert sum(",usage,default,web-1,app,Deployment/web," in line for line in sheet) == 119
    assert run(["history", "pod/web-1", "--data", str(data), "-o", "parquet"]) == 0
    path = tmp_path / "history.parquet"
    path.write_bytes(capsysbinary.readouterr().out)
    count = duckdb.connect(":memory:").execute(f"select count(*) from '{path}' where kind = 'usage'").fetchone()
    assert count == (119,)


def test_a_name_that_is_a_formula_is_quoted_in_a_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = directory(tmp_path / "history")
    for place, name in enumerate(("=1+1", "+1", "-1", "@x")):
        writer = JournalWriter(made.root / f"journal-{NOW - 60}-{place}.log")
        container = ContainerRecord(0, NOW * 1000, "default", "web", name, "Pod/web", "{}")
        writer.append([container, UsageRecord((NOW - 30) * 1000, [0], [0], [5], [6], [-1])])
        writer.close()
    code, out, _ = said(capsys, "pod/web", "--history-dir", str(made.root), "-o", "csv")
    assert code == 0
    cells = {line.split(",")[4] for line in out.splitlines()[1:]}
    assert cells == {"'=1+1", "'+1", "'-1", "'@x"}
    words = ("query", "select container from containers", "--history-dir", str(made.root), "-o", "csv")
    code, out, _ = said(capsys, *words)
    assert (code, set(out.splitlines())) == (0, {"container", "'=1+1", "'+1", "'-1", "'@x"})


def test_a_question_in_its_forms(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select pod, max(cpu) as most, true as yes, null as nothing from usage group by pod order by pod"
    code, out, _ = said(capsys, "query", sql, "--data", str(data), "-o", "json")
    told = json.loads(out)
    assert (code, [row["pod"] for row in told]) == (0, ["web-0", "web-1"])
    assert {"most", "yes", "nothing"} < told[0].keys()
    code, out, err = said(capsys, "query", sql, "--data", str(data), "--rows", "1")
    assert (code, out.split()[:4]) == (0, ["pod", "most", "yes", "nothing"])
    assert "there are more than 1 rows" in err
    code, _, err = said(capsys, "query", "select * from read_text('/etc/passwd')", "--data", str(data))
    assert code == 1
    assert "error: the function read_text may not be used" in err
    assert "podfit history query 'describe usage'" in err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("pod/none",), 1, "nothing was recorded of pod/none in namespace default in the last 7d"),
        (("pod/web-0", "-n", "other"), 1, "in namespace other"),
        (("gizmo/web",), 2, "is not one of pod/NAME, deployment/NAME"),
        (("pod/web-0", "--since", "0d"), 2, "--since 0d: it has to be more than 0"),
        (("pod/web-0", "--since", "9999d"), 2, "--since 9999d: it has to be at most 3650d"),
        (("pod/web-0", "--since", "soon"), 2, "--since: 'soon' is no duration"),
        (("query", "select 1", "--rows", "0"), 2, "--rows 0: it has to be from 1 to 1000000"),
        (("query", "select 1", "--memory", "99999"), 2, "--memory 99999: it has to be from 1 to 16384"),
        (("query", "select 1", "--timeout", "2h"), 2, "--timeout 2h: it has to be at most 3600 s"),
        (("query", "select 1", "--history-dir", "/x"), 2, "--data and --history-dir: give one of them"),
    ],
)
def test_what_is_wrong_is_said(
    data: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, text: str
) -> None:
    done, out, err = said(capsys, *words, "--data", str(data))
    assert done == code
    assert text in " ".join((out + err).split())


@pytest.mark.parametrize("words", [("pod/web",), ("query", "select 1")])
def test_without_a_history_it_says_where_one_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, _, err = said(capsys, *words, "--data", str(tmp_path))
    assert code == 3
    assert f"error: there is no history in {tmp_path}/history" in err
    assert "`podfit up` keeps one" in err


def test_without_the_extra_it_says_how_to_install_it(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podfit.cli.questions.history.find_spec", lambda name: None)
    for words in (("pod/web",), ("query", "select 1")):
        code, _, err = said(capsys, *words, "--data", str(data))
        assert (code, "pip install 'podfit[history]'" in err) == (3, True)


def test_columns_are_not_written_to_a_terminal(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert run(["history", "pod/web-0", "--data", str(data), "-o", "parquet"]) == 2
    assert "-o parquet: it is no text" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_sparkline() -> None:
    assert sparkline([0, None, 4, 7, 8]) == "▁·▅██"
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
