"""The kinds of batch."""

from podfit.api.batch.v1 import columns
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.meta.resource_info import STATUS, ResourceInfo

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=CronJob,
        group="batch",
        resource="cronjobs",
        singular="cronjob",
        short_names=("cj",),
        categories=("all",),
        subresources=(STATUS,),
        counted=lambda o: o.spec,
        columns=columns.CRON_JOB,
        row=columns.cron_job_row,
    ),
    ResourceInfo(
        type=Job,
        group="batch",
        resource="jobs",
        singular="job",
        categories=("all",),
        subresources=(STATUS,),
        counted=lambda o: o.spec,
        columns=columns.JOB,
        row=columns.job_row,
        propagation="Orphan",
        fields={"status.successful": lambda o: str(o.status.succeeded)},
        unselectable='field label "{}" not supported for batchv1.Job',
    ),
)
