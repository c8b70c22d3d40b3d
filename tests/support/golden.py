"""Recorded answers of a real Kubernetes 1.36, one case a request: `{id, group, …, request, expect}`.

`PODFIT_GOLDEN_DIR` names another folder of the shape of `tests/golden`. Text in braces stands for what differs between
runs: `{ns}`, `{uid}`, `{time}`, `{rv}`, `{rand}`.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Case = dict[str, Any]


def golden_folder() -> Path:
    return Path(os.environ.get("PODFIT_GOLDEN_DIR") or Path(__file__).parents[1] / "golden").resolve()


def cases(pattern: str) -> Iterator[Case]:
    """The cases of `resize/*.json` or `api/apply.json*`, packed or not; a pattern that matches nothing is an error."""
    files = sorted(golden_folder().glob(pattern))
    if not files:
        raise FileNotFoundError(f"no golden cases: nothing matches {golden_folder() / pattern}")
    for file in files:
        data = file.read_bytes()
        yield from json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)


def parametrize(pattern: str, wanted: Callable[[Case], bool] = lambda case: True) -> pytest.MarkDecorator:
    """One test for each case that is wanted; the test takes it as `case`."""
    chosen = [pytest.param(case, id=case["id"]) for case in cases(pattern) if wanted(case)]
    return pytest.mark.parametrize("case", chosen)
