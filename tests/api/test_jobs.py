"""Jobs and cron jobs: what may change, policies, statuses."""

from typing import Any

import pytest

from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.defaults import apply_defaults
from podfit.api.meta.codec import convert
from podfit.api.validation import validate_create, validate_status, validate_update
from podfit.decide.workload.workloads import new_job

UID = "0c3a5f0e-1d1b-4c9e-9a53-5e1d3f0b7c11"


def job(template: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> Job:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]} | (template or {})
    document = {
        "metadata": {"name": "j", "namespace": "default", "uid": UID},
        "spec": {"template": {"spec": pod}} | spec,
        "status": status or {},
    }
    return new_job(apply_defaults(convert(document, Job)))


def problems(errors: list[Any]) -> list[str]:
    return [f"{error.field}: {error.body}" for error in errors]


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        (job(), job(parallelism=3, completions=1, suspend=True), []),
        (job(completions=2), job(completions=3), ["spec.completions"]),
        (job(), job({"nodeSelector": {"a": "b"}}), ["spec.template"]),
        (job(suspend=True), job({"nodeSelector": {"a": "b"}}, suspend=True), []),
        (
            job(suspend=True),
            job({"affinity": {"nodeAffinity": {}}, "tolerations": [{"operator": "Exists"}]}, suspend=True),
            [],
        ),
        (job(suspend=True), job({"affinity": {"podAffinity": {}}}, suspend=True), ["spec.template.spec"]),
        (job(suspend=True), job({"hostname": "h"}, suspend=True), ["spec.template.spec"]),
        (
            job(suspend=True),
            job({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}, suspend=True),
            [],
        ),
        (
            job(completionMode="Indexed", completions=2, parallelism=2),
            job(completionMode="Indexed", completions=3, parallelism=3),
            [],
        ),
        (
            job(completionMode="Indexed", completions=2),
            job(completionMode="Indexed", completions=3),
            ["spec.completions"],
        ),
    ],
)
def test_what_of_a_job_may_change(old: Job, new: Job, fields: list[str]) -> None:
    assert [error.field for error in validate_update(new, old)] == fields


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxFailedIndexes": 1}, ["spec.backoffLimitPerIndex", "spec.maxFailedIndexes"]),
        ({"managedBy": "x"}, ["spec.managedBy"]),
        ({"managedBy": "acme.io/x"}, []),
        ({"successPolicy": {"rules": []}}, ["spec.successPolicy"]),
        (
            {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "0,5"}]}},
            ["spec.successPolicy.rules[0].succeededIndexes"],
        ),
        (
            {
                "completionMode": "Indexed",
                "completions": 3,
                "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 3}]},
            },
            ["spec.successPolicy.rules[0].succeededCount"],
        ),
        (
            {
                "podFailurePolicy": {
                    "rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3, 0]}}]
                }
            },
            [
                "spec.podFailurePolicy.rules[0].action",
                "spec.podFailurePolicy.rules[0].onExitCodes.values[1]",
                "spec.podFailurePolicy.rules[0].onExitCodes.values",
            ],
        ),
    ],
)
def test_policies(spec: dict[str, Any], expected: list[str]) -> None:
    assert [error.field for error in validate_create(job(**spec))] == expected


def status(*conditions: str, **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": sort, "status": "True"} for sort in conditions]} | more


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {},
            status(
                "SuccessCriteriaMet",
                "Complete",
                startTime="2026-01-01T00:00:00Z",
                completionTime="2026-01-01T00:01:00Z",
            ),
            [],
        ),
        ({}, status("Complete"), ["status.conditions", "status.completionTime", "status.startTime"]),
        ({}, status("Failed", startTime="2026-01-01T00:00:00Z"), ["status.conditions"]),
        ({"failed": 2}, {"failed": 1}, ["status.failed"]),
        ({}, {"active": -1}, ["status.active"]),
        ({}, {"ready": 1}, ["status.ready"]),
        ({}, {"completedIndexes": "0"}, ["status.completedIndexes"]),
        (status("FailureTarget"), {}, ["status.conditions"]),
        (
            {},
            {"uncountedTerminatedPods": {"failed": ["a"], "succeeded": ["a", ""]}},
            ["status.uncountedTerminatedPods.succeeded[1]", "status.uncountedTerminatedPods.failed[0]"],
        ),
    ],
)
def test_statuses(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    errors = validate_status(job(status=after), job(status=before))
    assert [error.field for error in errors] == expected, problems(errors)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Europe/Berlin", ""),
        ("Etc/UTC", ""),
        ("local", "must be an explicit time zone"),
        ("", "nil or non-empty"),
        ("../x", "unknown time zone ../x"),
        ("Mars/X", "unknown time zone Mars/X"),
        ("Europe", "unknown time zone"),
    ],
)
def test_zones(zone: str, text: str) -> None:
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
    spec = {"schedule": "@daily", "timeZone": zone, "jobTemplate": template}
    cron = apply_defaults(convert({"metadata": {"name": "c", "namespace": "default"}, "spec": spec}, CronJob))
    found = problems(validate_create(cron))
    assert text in "".join(found)
    assert bool(found) is bool(text)
