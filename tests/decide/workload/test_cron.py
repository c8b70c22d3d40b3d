"""Which run of a cron job is due, of those that were missed."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from podfit.api.batch.v1.types import CronJob, CronJobSpec, CronJobStatus, Job, JobCondition, JobStatus
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.cron import parse
from podfit.core.schedules import next_time
from podfit.core.times import format_time
from podfit.decide.workload import cron as cron_module
from podfit.decide.workload.cron import due, job_at, latest, name_at
from podfit.decide.workload.cron_status import seen
from support.turns import cpu_ms

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def cron(*, last: timedelta | None = None, **spec: object) -> CronJob:
    made = format_time(NOW - timedelta(days=2))
    status = CronJobStatus(last_schedule_time=format_time(NOW - last) if last is not None else None)
    whole = {"schedule": "*/10 * * * *", **spec}
    meta = ObjectMeta(name="c", namespace="shop", uid="u", creation_timestamp=made)
    return CronJob(metadata=meta, spec=CronJobSpec(**whole), status=status)  # type: ignore[arg-type]  # by the table


@pytest.mark.parametrize(
    ("given", "at", "told"),
    [
        (cron(last=timedelta(seconds=30)), "", []),
        (cron(last=timedelta(minutes=10, seconds=30)), "12:00", []),
        (cron(last=timedelta(hours=3)), "12:00", []),
        (cron(), "12:00", ["TooManyMissedTimes"]),
        (cron(starting_deadline_seconds=60), "12:00", []),
        (cron(schedule="0 11 * * *", starting_deadline_seconds=60), "", []),
        (cron(suspend=True), "", []),
        (cron(time_zone="Nowhere/At"), "", ["UnknownTimeZone"]),
        (cron(schedule="every day"), "", ["UnparseableSchedule"]),
        (cron(schedule="30 17 * * *", time_zone="Asia/Kolkata"), "12:00", []),
    ],
)
def test_what_is_due(given: CronJob, at: str, told: list[str]) -> None:
    found = due(given, (), NOW)
    assert (found.at.strftime("%H:%M") if found.at else "") == at
    assert [event.reason for event in found.told] == told


FAR = {
    "a deadline of all seconds": cron(starting_deadline_seconds=2**63 - 1, last=timedelta(minutes=5)),
    "a run in the year 1": replace(cron(), status=CronJobStatus(last_schedule_time="0001-01-01T00:00:00Z")),
    "a run in the year 9999": replace(cron(), status=CronJobStatus(last_schedule_time="9999-12-31T23:59:59Z")),
    "every 292 years": cron(schedule="@every 2562047h"),
    "every 10,000 years": cron(schedule="@every 87600000h"),
    "every so often that no float holds it": cron(schedule=f"@every {'9' * 400}h"),
    "never": cron(schedule="0 0 31 2 *"),
    "1.4 million numbers": cron(schedule="1," * 1_400_000 + "1 * * * *"),
    "all numbers again and again": cron(schedule="0-59," * 500_000 + "1 * * * *"),
    "a million units": cron(schedule="@every " + "1h" * 1_000_000),
}


@pytest.mark.parametrize("given", FAR.values(), ids=FAR.keys())
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_far_times_and_long_schedules_cost_little_and_raise_nothing(given: CronJob, zone: str) -> None:
    given = replace(given, spec=replace(given.spec, time_zone=zone))
    assert cpu_ms(lambda: due(given, (), NOW), most=50) < 50


@pytest.mark.parametrize(("policy", "starts", "ends"), [("Allow", True, 0), ("Forbid", False, 0), ("Replace", True, 1)])
def test_one_runs_still(policy: str, starts: bool, ends: int) -> None:
    running = Job(metadata=ObjectMeta(name="c-1"))
    found = due(cron(last=timedelta(minutes=20), concurrency_policy=policy), [running], NOW)
    assert (found.at is not None, len(found.end)) == (starts, ends)


def test_a_run_has_a_name_and_says_its_time() -> None:
    given = cron(time_zone="Asia/Kolkata")
    at = NOW.replace(second=0)
    assert name_at(given, at) == f"c-{int(at.timestamp()) // 60}"
    made = job_at(given, at).metadata
    assert made.annotations == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T17:30:00+05:30"}
    made = job_at(cron(time_zone="Europe/London"), at).metadata
    assert made.annotations == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize(
    "expression", ["* * * * *", "*/7 3 * * *", "0 0 1 * *", "* * * 1 *", "0 9 * * 1-5", "30 2 29 2 *"]
)
@pytest.mark.parametrize("days", [0.001, 0.4, 3, 45])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_the_latest_of_missed_runs_is_the_last_by_now(expression: str, days: float, zone: str) -> None:
    schedule, where, now = parse(expression), ZoneInfo(zone), datetime(2026, 3, 29, 3, 17, 20, tzinfo=UTC)
    after = now - timedelta(days=days)
    expected, moment = None, next_time(schedule, after, where)
    while moment is not None and moment <= now:
        expected, moment = moment, next_time(schedule, moment, where)
    assert latest(schedule, after, now, where)[0] == expected


def test_years_of_missed_runs_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every minute of January, looked at in December after ten years in which nobody ran it."""
    calls = 0

    def counted(*arguments: Any) -> datetime | None:
        nonlocal calls
        calls += 1
        return next_time(*arguments)

    monkeypatch.setattr(cron_module, "next_time", counted)
    now = datetime(2026, 12, 15, tzinfo=UTC)
    at, missed = latest(parse("* * * 1 *"), now - timedelta(days=3650), now, ZoneInfo("UTC"))
    assert (at, missed > 100) == (datetime(2026, 1, 31, 23, 59, tzinfo=UTC), True)
    assert calls < 100


def job(name: str, ended: str = "", at: str = "2026-01-01T11:00:00Z") -> Job:
    conditions = (JobCondition(type=ended, status="True"),) if ended else ()
    status = JobStatus(conditions=conditions, completion_time=at if ended == "Complete" else None)
    return Job(metadata=ObjectMeta(name=name, uid=name), status=status)


@pytest.mark.parametrize(
    ("named", "jobs", "running", "told", "success"),
    [
        ("ab", [job("a"), job("b")], "ab", [], None),
        ("a", [], "", ["MissingJob"], None),
        ("", [job("a")], "", ["UnexpectedJob"], None),
        ("", [job("a", "Complete")], "", [], "2026-01-01T11:00:00Z"),
        ("ab", [job("a", "Failed"), job("b")], "b", ["SawCompletedJob"], None),
        ("a", [job("a", "Complete")], "", ["SawCompletedJob"], "2026-01-01T11:00:00Z"),
    ],
)
def test_which_of_its_jobs_run(named: str, jobs: list[Job], running: str, told: list[str], success: str | None) -> None:
    active = tuple(ObjectReference(kind="Job", name=name, uid=name) for name in named)
    given = cron()
    given = replace(given, status=replace(given.status, active=active))
    found = seen(given, jobs)
    assert "".join(reference.name for reference in found.status.active) == running
    assert "".join(job.metadata.name for job in found.running) == running
    assert [event.reason for event in found.told] == told
    assert found.status.last_successful_time == success


def test_of_a_job_that_was_just_deleted_nothing_is_told() -> None:
    given = cron()
    status = replace(given.status, active=(ObjectReference(kind="Job", name="a", uid="a"),))
    ended = job("a", "Complete", "2026-01-01T11:00:00Z")
    found = seen(replace(given, status=status), [ended], {"a"})
    assert (found.told, found.status.active, found.status.last_successful_time) == ((), (), "2026-01-01T11:00:00Z")


def test_the_last_success_never_goes_back() -> None:
    given = cron()
    active = tuple(ObjectReference(kind="Job", name=name, uid=name) for name in "ab")
    status = replace(given.status, active=active)
    jobs = [job("a", "Complete", "2026-01-01T11:00:00Z"), job("b", "Complete", "2026-01-01T10:00:00Z")]
    assert seen(replace(given, status=status), jobs).status.last_successful_time == "2026-01-01T11:00:00Z"
