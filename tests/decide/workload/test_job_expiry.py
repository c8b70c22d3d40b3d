"""When a finished job goes."""

from typing import Any

import pytest

from podfit.api.batch.v1.types import Job
from podfit.api.meta.codec import convert
from podfit.core.times import parse_time
from podfit.decide.workload.job.expiry import expires

ENDED = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("ttl", "condition", "going", "when"),
    [
        (60, ENDED, False, "2026-01-01T12:01:00Z"),
        (0, {**ENDED, "type": "Failed"}, False, "2026-01-01T12:00:00Z"),
        (None, ENDED, False, None),
        (60, {**ENDED, "status": "False"}, False, None),
        (60, {**ENDED, "type": "Suspended"}, False, None),
        (60, {"type": "Complete", "status": "True"}, False, None),
        (60, ENDED, True, None),
    ],
)
def test_expires(ttl: int | None, condition: dict[str, Any], going: bool, when: str | None) -> None:
    meta = {"name": "j", **({"deletionTimestamp": "2026-01-01T12:00:00Z"} if going else {})}
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    job = convert({"metadata": meta, "spec": spec, "status": {"conditions": [condition]}}, Job)
    assert expires(job) == (parse_time(when) if when else None)
