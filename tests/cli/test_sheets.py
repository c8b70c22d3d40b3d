"""`podfit recommend` as a sheet: numbers, what a spreadsheet must not take for a formula, and prices."""

import csv
import io
from pathlib import Path

import pytest

from answers.test_recommend import shop
from cli.test_questions import ask
from podfit.answers.autoscaling.prices import PriceError, prices_of
from podfit.cli.questions.sheets import csv_sheet, markdown_sheet

SHORT = ("recommend", "--for", "0.1s", "--interval", "0.1s")
PRICES = "{cpu: 0.1, memory: 0.01, currency: EUR, hours: 100}"


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES)
    return path


async def test_csv_has_numbers_and_prices(tmp_path: Path, prices: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, shop(), *SHORT, "--prices", str(prices), "-o", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    web = next(row for row in rows if row["workload"] == "deployment/web" and row["resource"] == "cpu")
    assert (web["namespace"], web["pods"], web["unit"], web["request"], web["currency"]) == (
        "shop",
        "2",
        "cores",
        "0.5",
        "EUR",
    )
    assert float(web["saves"]) == pytest.approx(2 * (0.5 - float(web["recommended"])))
    assert float(web["saves_monthly"]) == pytest.approx(float(web["saves"]) * 0.1 * 100, abs=0.01)
    memory = next(row for row in rows if row["workload"] == "deployment/web" and row["resource"] == "memory")
    assert (memory["unit"], memory["request"]) == ("MiB", "256.0")


async def test_markdown_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await ask(tmp_path, shop(), *SHORT, "-o", "markdown") == 0
    header, line, *rows = capsys.readouterr().out.splitlines()
    assert header.startswith("| namespace | workload | pods |")
    assert set(line) == set("| -")
    assert len(rows) == 4
    assert all(row.count(" | ") == header.count(" | ") for row in rows)


async def test_the_table_says_what_is_saved_in_a_month(
    tmp_path: Path, prices: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(tmp_path, shop(), *SHORT, "--prices", str(prices)) == 0
    told = capsys.readouterr().out
    assert "A MONTH" in told.splitlines()[0]
    assert "EUR" in told.splitlines()[-1]


def test_a_cell_is_no_formula_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = ("=HYPERLINK(1)", "+1", "-1", "@x", 'a,"b', "x\x1b[2J", -1.5, None)
    csv_sheet(("name",) * len(hostile), [hostile])
    _, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert row == ["'=HYPERLINK(1)", "'+1", "'-1", "'@x", 'a,"b', "x\\x1b[2J", "-1.5", ""]
    markdown_sheet(("name",), [("a|b <img> `c` [d](e)",)])
    assert capsys.readouterr().out.splitlines()[2] == "| a\\|b \\<img> \\`c\\` \\[d](e) |"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([1], "a mapping"),
        ({"cpu": 1}, "missing required field `memory`"),
        ({"cpu": -1, "memory": 1}, "cpu: -1 has to be from 0"),
        ({"cpu": "nan", "memory": 1}, "cpu: NaN has to be from 0"),
        ({"cpu": 1, "memory": 1, "disk": 1}, "disk"),
        ({"cpu": 1, "memory": "1e400"}, "memory"),
        ({"cpu": "free", "memory": 1}, "needed are cpu and memory"),
    ],
)
def test_prices_that_are_none(document: object, told: str) -> None:
    with pytest.raises(PriceError, match=told):
        prices_of(document)
