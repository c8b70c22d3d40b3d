"""Figures in the documents are generated, and are what the tests replay and the last run of the checklist showed."""

import pytest

from support.figures import documents, figures, marked, written


def test_the_documents_have_the_figures_of_today() -> None:
    known = figures()
    stale = [path.name for path in documents() if written(path.read_text(), known) != path.read_text()]
    assert not stale, "write them anew: make figures"


def test_the_readme_and_the_page_on_compatibility_have_generated_figures() -> None:
    found = {path.name: marked(path.read_text()) for path in documents()}
    assert "conformance" in found["README.md"]
    assert "agreement" in found["compatibility.md"]


def test_a_stale_figure_is_written_and_an_unknown_one_is_an_error() -> None:
    assert written("a <!-- figure x -->1<!-- end --> b", {"x": "2"}) == "a <!-- figure x -->2<!-- end --> b"
    with pytest.raises(KeyError):
        written("<!-- figure y -->1<!-- end -->", {"x": "2"})
