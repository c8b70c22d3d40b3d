"""Rules of every area with inputs that no recorded case has: `rules/AREA.json`.

A case is an object, maybe a change to it, and what is wrong with the whole in upstream's words and order. What is
expected follows from the rules of upstream 1.36.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import resources
from podfit.api.validation import validate_create
from support.rules_of_kinds import made, said_of, said_of_change

KINDS = {(info.kind, info.home.version): info.type for info in resources() if info.stored}
GROUPED = {(info.kind, info.group): info.type for info in resources() if info.stored}
CASES = [
    pytest.param(case, id=f"{file.stem}-{number}")
    for file in sorted(Path(__file__).with_name("rules").glob("*.json"))
    for number, case in enumerate(json.loads(file.read_text()))
]


@pytest.mark.parametrize("case", CASES)
def test_rules(case: dict[str, Any]) -> None:
    grouped = "group" in case
    kind = GROUPED[case["kind"], case["group"]] if grouped else KINDS[case["kind"], case.get("version", "v1")]
    if "change" in case:
        assert said_of_change(case["object"], case["change"], kind) == case["wrong"]
    else:
        assert said_of(case["object"], kind) == case["wrong"]


def test_a_pod_without_an_account_has_no_tokens() -> None:
    volume = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    pod = made({"metadata": {"name": "p"}, "spec": spec}, Pod)
    without = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, service_account_name=""))
    path = "spec.volumes[0].projected.sources[0].serviceAccountToken"
    text = "must not be specified when serviceAccountName is not set"
    assert [str(error) for error in validate_create(without)] == [f"{path}: Forbidden: {text}"]
