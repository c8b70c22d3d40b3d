"""VPA objects as the upstream webhook judged them, and the one rule that ours adds."""

from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.meta.codec import convert
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import RECREATE, update_mode
from podfit.decide.autoscaling.validation import default_patch, validate, warnings
from support.golden import Case
from support.vpa_golden import replay

WITHOUT_TARGET = ("spec.targetRef", "FieldValueRequired")
"""Upstream means to refuse it on creation, and never does: its test whether something is created is always false."""


def vpa(**spec: Any) -> VerticalPodAutoscaler:
    target = {"targetRef": {"kind": "Deployment", "name": "web"}}
    return convert({"metadata": {"name": "v", "namespace": "ns"}, "spec": target | spec}, VerticalPodAutoscaler)


def found(new: VerticalPodAutoscaler, old: VerticalPodAutoscaler | None = None, **gates: bool) -> list[tuple[str, str]]:
    return sorted((error.field, error.cause()["reason"]) for error in validate(new, old, Gates(**gates)))


@pytest.mark.row("V-004", "V-005", "V-006", "V-007")
@replay("vpa_validation")
def test_vpa_objects_are_judged_as_recorded(case: Case) -> None:
    new = convert(case["object"], VerticalPodAutoscaler)
    old = convert(case["old_object"], VerticalPodAutoscaler) if case["operation"] == "UPDATE" else None
    expected = sorted((error["field"], error["type"]) for error in case.get("errors", ()))
    if old is None and new.spec.target_ref is None:
        expected = sorted([*expected, WITHOUT_TARGET])
    errors = validate(new, old, Gates.of(case["feature_gates"]))
    assert sorted((error.field, error.cause()["reason"]) for error in errors) == expected
    assert sorted(warnings(new, old)) == sorted(case.get("warnings", ()))
    if case["allowed"]:
        assert list(default_patch(new)) == (case.get("patches") or [])


def test_a_vpa_without_a_target_is_refused_when_it_is_made() -> None:
    nothing = vpa(targetRef=None)
    assert found(nothing) == [WITHOUT_TARGET]
    assert found(nothing, nothing) == []


@pytest.mark.row("V-004")
@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"maxAllowed": {"cpu": "1"}, "minAllowed": {"cpu": "2"}}, "maxAllowed[cpu]", "Invalid"),
        ({"mode": "Off", "controlledValues": "RequestsAndLimits"}, "controlledValues", "Forbidden"),
        ({"minAllowed": {"memory": "100m"}}, "minAllowed[memory]", "Invalid"),
    ],
)
def test_a_container_policy_that_contradicts_itself(spec: dict[str, Any], field: str, reason: str) -> None:
    policies = {"containerPolicies": [{"containerName": "c"} | spec]}
    expected = [(f"spec.resourcePolicy.containerPolicies[0].{field}", f"FieldValue{reason}")]
    assert found(vpa(resourcePolicy=policies)) == expected


@pytest.mark.row("V-004", "V-110")
@pytest.mark.parametrize(
    ("boost", "field", "reason"),
    [
        ({"type": "Factor", "factor": 0}, "factor", "Invalid"),
        ({"type": "Quantity", "quantity": "1u"}, "quantity", "Invalid"),
        ({"type": "Other"}, "type", "NotSupported"),
    ],
)
def test_a_startup_boost(boost: dict[str, Any], field: str, reason: str) -> None:
    new = vpa(startupBoost={"cpu": boost})
    assert found(new, cpu_startup_boost=True) == [(f"spec.startupBoost.cpu.{field}", f"FieldValue{reason}")]
    assert found(new) == [("spec.startupBoost", "FieldValueForbidden")]


@pytest.mark.row("V-005")
def test_what_a_stored_object_has_stays_editable_without_its_gate() -> None:
    in_place = vpa(updatePolicy={"updateMode": "InPlace"})
    boosted = vpa(startupBoost={"cpu": {"type": "Factor", "factor": 2}})
    quick = vpa(updatePolicy={"updateMode": "Off", "evictAfterOOMSeconds": 5})
    for autoscaler, field in (
        (in_place, "spec.updatePolicy.updateMode"),
        (boosted, "spec.startupBoost"),
        (quick, "spec.updatePolicy.evictAfterOOMSeconds"),
    ):
        assert found(autoscaler) == [(field, "FieldValueForbidden")]
        assert found(autoscaler, autoscaler) == []


@pytest.mark.row("V-008")
def test_an_unknown_resource_is_only_warned_about_when_it_is_stored() -> None:
    policies = {"containerPolicies": [{"containerName": "c", "controlledResources": ["cpu", "gpu"]}]}
    new = vpa(resourcePolicy=policies)
    field = "spec.resourcePolicy.containerPolicies[0].controlledResources[1]"
    assert found(new) == [(field, "FieldValueNotSupported")]
    assert warnings(new, None) == ()
    assert found(new, new) == []
    assert [warning.partition(":")[0] for warning in warnings(new, new)] == [field]


@pytest.mark.row("V-007")
def test_auto_is_the_old_name_of_recreate() -> None:
    for policy in ({"updateMode": "Auto"}, {"updateMode": "Recreate"}, {}, None):
        assert update_mode(vpa(updatePolicy=policy)) == RECREATE


def test_an_unknown_gate_is_an_error() -> None:
    assert Gates.of({"InPlace": True}) == Gates(in_place=True)
    with pytest.raises(ValueError, match="unrecognized feature gate: Inplace"):
        Gates.of({"Inplace": True})
