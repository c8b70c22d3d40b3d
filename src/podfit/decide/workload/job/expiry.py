"""When a finished job goes: `ttlSecondsAfterFinished` after its end."""

from datetime import datetime, timedelta

from podfit.api.batch.v1.types import Job
from podfit.core.times import parse_time
from podfit.decide.workload.job.state import COMPLETE, FAILED, said


def expires(job: Job) -> datetime | None:
    """When the job goes; None for one that stays."""
    ttl, over = job.spec.ttl_seconds_after_finished, said(job, COMPLETE) or said(job, FAILED)
    if ttl is None or over is None or over.last_transition_time is None or job.metadata.deletion_timestamp:
        return None
    return parse_time(over.last_transition_time) + timedelta(seconds=ttl)
