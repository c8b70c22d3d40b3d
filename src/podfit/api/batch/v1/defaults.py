"""Defaults of jobs and cron jobs."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.batch.v1.types import (
    CronJob,
    CronJobSpec,
    Job,
    JobSpec,
    JobTemplateSpec,
    PodFailurePolicy,
    PodFailurePolicyRule,
)
from podfit.api.core.v1.pods.defaults import default_template
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside

_NO_LIMIT = 2**31 - 1


def _job(job: Job) -> Job:
    job = inside(job, spec=_job_spec)
    labels = job.spec.template.metadata.labels
    return job if job.metadata.labels else change(job, metadata=change(job.metadata, labels=labels))


def _job_spec(spec: JobSpec) -> JobSpec:
    if spec.completions is None and spec.parallelism is None:
        spec = fill(spec, completions=1)
    spec = fill(
        spec,
        parallelism=1,
        backoff_limit=6 if spec.backoff_limit_per_index is None else _NO_LIMIT,
        completion_mode="NonIndexed",
        suspend=False,
        manual_selector=False,
        pod_replacement_policy="TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed",
    )
    return inside(spec, template=default_template, pod_failure_policy=_failures)


def _failures(policy: PodFailurePolicy) -> PodFailurePolicy:
    return inside(policy, rules=_failure_rule)


def _failure_rule(rule: PodFailurePolicyRule) -> PodFailurePolicyRule:
    return inside(rule, on_pod_conditions=lambda pattern: fill(pattern, status="True"))


def _cron_job(cron: CronJob) -> CronJob:
    return inside(cron, spec=_cron_job_spec)


def _cron_job_spec(spec: CronJobSpec) -> CronJobSpec:
    """The jobs to be get their own defaults when they are made; their pods' are filled in now."""
    spec = fill(
        spec, concurrency_policy="Allow", suspend=False, successful_jobs_history_limit=3, failed_jobs_history_limit=1
    )
    return inside(spec, job_template=_job_template)


def _job_template(template: JobTemplateSpec) -> JobTemplateSpec:
    return inside(template, spec=lambda spec: inside(spec, template=default_template))


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {Job: _job, CronJob: _cron_job}
