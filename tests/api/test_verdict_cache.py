"""What is remembered of values by their encoding never shows: the outcome is what the rule says, always."""

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import ResourceClaim, ResourceRequirements
from podfit.api.core.v1.pods.defaults import default_template_spec
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.resources import validate_container_resources
from podfit.api.core.v1.pods.validation.volumes import validate_volumes
from podfit.api.core.v1.pods.volumes import ProjectedVolumeSource, Volume
from podfit.api.meta import verdict_cache
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.verdict_cache import memoized_default, passed
from podfit.core.fields import FieldError, invalid
from podfit.core.quantity import Quantity


def labelled(text: str) -> LabelSelector:
    return LabelSelector(match_labels={"app": text})


class Counted:
    """A default that says how often it was asked: `a` becomes `b`, all else stays."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, selector: LabelSelector) -> LabelSelector:
        self.asked += 1
        return labelled("b") if selector == labelled("a") else selector


def test_a_default_is_worked_out_once_for_values_that_are_alike() -> None:
    rule = Counted()
    default = memoized_default(rule)
    for _ in range(3):
        assert default(labelled("a")) == labelled("b")
        kept = labelled("c")
        assert default(kept) is kept
    assert rule.asked == 2


def test_memory_is_bounded_by_number_and_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_cache, "MOST", 2)
    monkeypatch.setattr(verdict_cache, "LONGEST", 100)
    rule = Counted()
    default = memoized_default(rule)
    for text in ("1", "2", "3", "1", "x" * 200, "x" * 200):  # the third begins anew; long ones are not kept
        default(labelled(text))
    assert rule.asked == 6


def test_what_is_wrong_is_said_anew_with_its_path() -> None:
    asked = []

    @passed
    def check(selector: LabelSelector, path: str) -> list[FieldError]:
        asked.append(path)
        return [invalid(path, "a", "no")] if selector == labelled("a") else []

    for path in ("one", "two"):
        assert [error.field for error in check(labelled("a"), path)] == [path]
        assert check(labelled("b"), path) == []
    assert asked == ["one", "one", "two"]


def test_specs_with_the_same_gaps_get_the_same_defaults() -> None:
    first, second = (default_template_spec(PodSpec(service_account="robot")) for _ in range(2))
    assert first == second
    assert (first.service_account_name, first.restart_policy) == ("robot", "Always")
    assert default_template_spec(replace(first, service_account_name="")).service_account_name == "robot"


def test_claims_are_looked_up_in_each_pod() -> None:
    """Amounts that passed once do not vouch for what depends on the pod around them."""
    amounts = ResourceRequirements(requests={"cpu": Quantity.parse("1")}, claims=(ResourceClaim(name="gpu"),))
    assert validate_container_resources(amounts, ("gpu",), "c") == []
    for path in ("a", "b"):
        assert [error.field for error in validate_container_resources(amounts, (), path)] == [f"{path}.claims[0]"]


def test_an_empty_projection_does_not_vouch_for_another_volume() -> None:
    fine = Volume(name="v", projected=ProjectedVolumeSource(default_mode=0o644))
    for _ in range(2):
        assert validate_volumes((fine,), "spec.volumes")[1] == []
        wrong = replace(fine, projected=ProjectedVolumeSource(default_mode=0o1000))
        assert [error.field for error in validate_volumes((wrong,), "v")[1]] == ["v[0].projected.defaultMode"]
