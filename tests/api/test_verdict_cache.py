"""What is remembered of values by their encoding never shows: the outcome is what the rule says, always."""

from collections.abc import Callable

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
from podfit.api.meta.verdict_cache import passed
from podfit.core.fields import FieldError, invalid
from podfit.core.quantity import Quantity


def labelled(text: str) -> LabelSelector:
    return LabelSelector(match_labels={"app": text})


def counting(asked: list[LabelSelector]) -> Callable[[LabelSelector, str], list[FieldError]]:
    """A check that all pass, which says what it was asked about."""

    @passed
    def check(selector: LabelSelector, _path: str) -> list[FieldError]:
        asked.append(selector)
        return []

    return check


def test_memory_is_bounded_by_number_and_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_cache, "MOST", 2)
    monkeypatch.setattr(verdict_cache, "ALIKE", 1)
    monkeypatch.setattr(verdict_cache, "LONGEST", 100)
    asked: list[LabelSelector] = []
    check = counting(asked)
    one, two, three, long = map(labelled, ("1", "2", "3", "x" * 200))
    for value, times in ((one, 1), (two, 2), (one, 2), (two, 2), (three, 3), (one, 4)):  # the third begins anew
        check(value, "")
        assert len(asked) == times
    for times in (5, 6):  # long ones are not kept
        check(long, "")
        assert len(asked) == times


def test_a_check_is_passed_by_what_is_equal_to_one_of_the_last_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_cache, "ALIKE", 2)
    asked = []

    @passed
    def check(selector: LabelSelector, path: str) -> list[FieldError]:
        asked.append(selector)
        return []

    for text in ("1", "2", "3"):
        check(labelled(text), "")
    for text, times in (("3", 3), ("2", 3), ("1", 4)):
        check(labelled(text), "")
        assert len(asked) == times


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
