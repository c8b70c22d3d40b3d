"""Each row of the checklist has a test that names it, or a reason why it cannot be shown here."""

from support.conformance import Checklist, Shown, marked_rows, page


def test_tests_name_only_rows_that_there_are() -> None:
    assert set(marked_rows()) - Checklist.load().ids == set()


def test_every_row_has_a_test_or_a_reason() -> None:
    checklist = Checklist.load()
    assert checklist.ids - set(marked_rows()) == set(checklist.not_shown)


def test_a_row_without_a_test_stands_out_and_the_worst_outcome_counts() -> None:
    checklist, shown = Checklist.load(), Shown()
    shown.add(["R-001"], "tests/x.py::test_a", "passed")
    shown.add(["R-001"], "tests/x.py::test_a", "failed")
    shown.add(["R-001"], "tests/x.py::test_a", "passed")
    shown.add(["R-002"], "tests/x.py::test_b", "passed")
    lines = {line.split(" | ")[0]: line for line in page(checklist, shown, "today").splitlines()}
    assert lines["| R-001"].endswith("| `x.py::test_a` | failed |")
    assert lines["| R-002"].endswith("| `x.py::test_b` | passed |")
    assert lines["| R-003"].endswith("|  | NOT SHOWN |")
    assert "not shown: " in lines["| R-154"]
    assert f"1 of {len(checklist.ids)} rows" in page(checklist, shown, "today")
