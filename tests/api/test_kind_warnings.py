"""What clients are warned of beside pods and templates, with inputs that no recorded case has: `warnings.json`.

A case is an object, maybe a change to it, and all warnings in upstream's words and order. Known from upstream's
strategies (`WarningsOnCreate`, `WarningsOnUpdate`) and from `pkg/api/*/warnings.go`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from podfit.api.registry import resources
from podfit.decide.workload.templates import warnings_of
from support.rules_of_kinds import made, merged

KINDS = {info.kind: info.type for info in resources() if info.stored and info.version == "v1"}
CASES = json.loads(Path(__file__).with_name("warnings.json").read_text())


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['kind']}-{n}") for n, case in enumerate(CASES)])
def test_warnings(case: dict[str, Any]) -> None:
    kind, manifest = KINDS[case["kind"]], case["object"]
    if "change" in case:
        said = warnings_of(made(merged(manifest, case["change"]), kind), made(manifest, kind))
    else:
        said = warnings_of(made(manifest, kind), None)
    assert said == case["warned"]
