"""Which files a session imports, by the markers that they name."""

from pathlib import Path

import pytest

from support.marked_files import may_have

MARKERS = ("node", "guest", "etcd", "campaign")
PLAIN = "def test_it(): ..."
NODE = "pytestmark = [pytest.mark.node]"
BOTH = "@pytest.mark.guest\n@pytest.mark.node\ndef test_it(): ..."


@pytest.mark.parametrize(
    ("text", "expression", "imported"),
    [
        (PLAIN, "", True),
        (PLAIN, "node", False),
        (PLAIN, "not (node or guest or etcd or campaign)", True),
        (NODE, "node and not (guest or campaign)", True),
        (NODE, "guest", False),
        (NODE, "not node", True),
        (BOTH, "guest and not campaign", True),
        (BOTH, "(etcd or campaign) and node", False),
        (PLAIN, "row and not campaign", True),
        (PLAIN, "node or row", True),
    ],
)
def test_a_file_is_imported_when_some_of_its_markers_fit(
    tmp_path: Path, text: str, expression: str, *, imported: bool
) -> None:
    """`row` is none of the markers that files name, so nothing is known of it."""
    path = tmp_path / "test_it.py"
    path.write_text(text)
    assert may_have(path, expression, MARKERS) is imported
