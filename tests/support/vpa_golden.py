"""Recorded inputs and outputs of the upstream Vertical Pod Autoscaler: `vpa/*.json[.gz]` of the golden folder.

Each file is `{format, source, cases}` (tests/golden/vpa/README.md). `PODFIT_GOLDEN_DIR` names another folder of that
shape. Where podfit answers otherwise on purpose, a test says which cases and why, and checks what they answer instead.
"""

import gzip
import json
from collections.abc import Callable

import pytest

from support.golden import Case, golden_folder, replaying


def cases(name: str) -> list[Case]:
    """Of the file `name`, packed or not. FileNotFoundError when there is none."""
    folder = golden_folder() / "vpa"
    packed = folder / f"{name}.json.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / f"{name}.json").read_bytes()
    found: list[Case] = json.loads(data)["cases"]
    assert found, f"{folder}/{name}.json has no cases"
    return found


def replay(name: str, wanted: Callable[[Case], bool] = lambda case: True) -> pytest.MarkDecorator:
    """One test for each case that is wanted; the test takes it as `case`."""
    return replaying(f"vpa/{name}.json*", lambda: filter(wanted, cases(name)))
