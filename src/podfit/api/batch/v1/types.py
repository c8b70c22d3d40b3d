"""Jobs, which run pods until enough of them have succeeded, and cron jobs, which make jobs at given times."""

from typing import Annotated

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import SET_REPLACED, Object, Struct, Time, always, merged
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta

UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
"""By which a job knows its pods: the present name, and the one of older versions."""


class PodFailurePolicyOnExitCodesRequirement(Struct):
    container_name: str | None = None
    operator: str = always(default="")
    values: Annotated[tuple[int, ...], SET_REPLACED] = always(default=())


class PodFailurePolicyOnPodConditionsPattern(Struct):
    status: str = always(default="")
    type: str = always(default="")


class PodFailurePolicyRule(Struct):
    action: str = always(default="")
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodConditionsPattern, ...] = ()


class PodFailurePolicy(Struct):
    rules: tuple[PodFailurePolicyRule, ...] = always(default=())


class SuccessPolicyRule(Struct):
    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


class SuccessPolicy(Struct):
    rules: tuple[SuccessPolicyRule, ...] = always(default=())


class JobSpec(Struct):
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    completions: int | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: PodTemplateSpec = always(default=PodTemplateSpec())
    ttl_seconds_after_finished: int | None = None


class JobTemplateSpec(Struct):
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: JobSpec = always(default=JobSpec())


class CronJobSpec(Struct):
    concurrency_policy: str = ""
    failed_jobs_history_limit: int | None = None
    job_template: JobTemplateSpec = always(default=JobTemplateSpec())
    schedule: str = always(default="")
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    suspend: bool | None = None
    time_zone: str | None = None


class CronJobStatus(Struct):
    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(Object):
    kind: str = always(default="CronJob")
    api_version: str = always(default="batch/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: CronJobSpec = always(default=CronJobSpec())
    status: CronJobStatus = always(default=CronJobStatus())


class JobCondition(Struct):
    last_probe_time: Time | None = always(default=None)
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class UncountedTerminatedPods(Struct):
    failed: Annotated[tuple[str, ...], SET_REPLACED] = ()
    succeeded: Annotated[tuple[str, ...], SET_REPLACED] = ()


class JobStatus(Struct):
    active: int = 0
    completed_indexes: str = ""
    completion_time: Time | None = None
    conditions: Annotated[tuple[JobCondition, ...], merged("type")] = ()
    failed: int = 0
    failed_indexes: str | None = None
    ready: int | None = None
    start_time: Time | None = None
    succeeded: int = 0
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Object):
    kind: str = always(default="Job")
    api_version: str = always(default="batch/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: JobSpec = always(default=JobSpec())
    status: JobStatus = always(default=JobStatus())
