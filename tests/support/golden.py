"""Recorded answers of a real Kubernetes 1.36, one case a request: `{id, group, …, request, expect}`.

`PODFIT_GOLDEN_DIR` names another folder of the shape of `tests/golden`; it may be a part, and tests whose file is not
in it are deselected by name (`support.unrecorded`). A file that is there and of which a test replays nothing is an
error: pytest's `empty_parameter_set_mark` is `fail_at_collect`. Text in braces stands for what differs between
runs: `{ns}`, `{uid}`, `{time}`, `{rv}`, `{rand}`.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

Case = dict[str, Any]


OWN = Path(__file__).parents[1] / "golden"


def golden_folder() -> Path:
    return Path(os.environ.get("PODFIT_GOLDEN_DIR") or OWN).resolve()


def is_recorded(pattern: str) -> bool:
    """Whether the folder has such files. FileNotFoundError where podfit's own has none, or the folder is not there."""
    folder = golden_folder()
    found = any(folder.glob(pattern))
    if not found and (folder == OWN.resolve() or not folder.is_dir()):
        raise FileNotFoundError(f"no golden cases: nothing matches {folder / pattern}")
    return found


def needs(pattern: str) -> pytest.MarkDecorator:
    """Of a test that reads these files by itself."""
    return pytest.mark.golden(pattern)


REPLAYED: dict[tuple[str, str], bool] = {}
"""Of the cases that the modules imported so far replay, by file and id: whether whole answers are compared."""


def cases(pattern: str) -> Iterator[Case]:
    """The cases of `resize/*.json` or `api/apply.json*`, packed or not; a pattern that matches nothing is an error."""
    return (case for _, case in recorded(pattern))


def recorded(pattern: str) -> Iterator[tuple[str, Case]]:
    """Each case and the name of its file, without what it ends in."""
    files = sorted(golden_folder().glob(pattern))
    if not files:
        raise FileNotFoundError(f"no golden cases: nothing matches {golden_folder() / pattern}")
    for file in files:
        data = file.read_bytes()
        for case in json.loads(gzip.decompress(data) if file.suffix == ".gz" else data):
            yield f"{file.parent.name}/{file.name.partition('.')[0]}", case


def parametrize(
    pattern: str,
    wanted: Callable[[Case], bool] = lambda case: True,
    *,
    whole: Callable[[Case], bool] = lambda case: True,
) -> pytest.MarkDecorator:
    """One test for each case that is wanted; the test takes it as `case`.

    `whole` is false of a case whose answer is compared by code and reason only: its text is ours.
    """

    def chosen() -> Iterator[Case]:
        for file, case in recorded(pattern):
            if wanted(case):
                REPLAYED[file, case["id"]] = REPLAYED.get((file, case["id"]), False) or whole(case)
                yield case

    return replaying(pattern, chosen)


def replaying(pattern: str, read: Callable[[], Iterable[Case]]) -> pytest.MarkDecorator:
    """One test, which takes it as `case`, for each case that is read from these files."""
    if not is_recorded(pattern):
        return pytest.mark.parametrize("case", [pytest.param({}, id=pattern, marks=needs(pattern))])
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in read()])
