"""Parallelism of a job: which pods to create and to delete."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.containers import Container, EnvVar, EnvVarSource
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.references import ObjectFieldSelector
from podfit.decide.workload.deletion_order import first_to_go
from podfit.decide.workload.job.backoff import FAILURES, IGNORED
from podfit.decide.workload.job.failed_indexes import Before, before, kept, remaining
from podfit.decide.workload.job.indexes import ANNOTATION, index_of
from podfit.decide.workload.job.pods import FINALIZER, is_indexed, is_suspended, waits_for_end
from podfit.decide.workload.job.state import JobState
from podfit.decide.workload.pods import from_template

MOST = 500
"""Pods that are made or ended in one go."""
ENVIRONMENT = "JOB_COMPLETION_INDEX"


class JobStep(msgspec.Struct, frozen=True, kw_only=True):
    """Pods to make, or to end without counting them. `again`: seconds until more may be made."""

    make: tuple[Pod, ...] = ()
    end: tuple[Pod, ...] = ()
    again: float | None = None


def step(seen: JobState) -> JobStep:
    """For a job that is not over. Of a suspended one all pods end."""
    job, active = seen.job, list(seen.active)
    if is_suspended(job):
        return JobStep(end=tuple(_to_end(seen, active, len(active))))
    wanted = _wanted(seen, len(active))
    if doomed := _to_end(seen, active, max(0, len(active) - wanted)):
        return JobStep(end=tuple(doomed[:MOST]))
    missing = wanted - len(active) - (seen.terminating if waits_for_end(job) else 0)
    if missing <= 0:
        return JobStep()
    if job.spec.backoff_limit_per_index is not None:
        return _independent(seen, min(missing, MOST))
    if pause := seen.failures.remaining(seen.now):
        return JobStep(again=pause)
    if not is_indexed(job):
        return JobStep(make=(new_pod(job),) * min(missing, MOST))
    return JobStep(make=tuple(new_pod(job, index) for index in _pending(seen, min(missing, MOST))))


def _wanted(seen: JobState, active: int) -> int:
    spec = seen.job.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:  # with the first success nothing is added any more
        return active if seen.succeeded else parallelism
    return max(0, min(parallelism, spec.completions - seen.succeeded - len(seen.failed_indexes)))


def _to_end(seen: JobState, active: Sequence[Pod], count: int) -> list[Pod]:
    """`count` at least; of an indexed job also those of an index that another has, and of none."""
    if not is_indexed(seen.job):
        return first_to_go(active, active, count, seen.now) if count else []
    chosen, taken = list[Pod](), set[int]()
    rest = list[Pod]()
    newest_last = sorted(active, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    for pod in newest_last:
        index = index_of(pod)
        if index is None or index in taken or not seen.counts_index(pod):
            chosen.append(pod)
        else:
            taken.add(index)
            rest.append(pod)
    more = count - len(chosen)
    return [*chosen, *(first_to_go(rest, rest, more, seen.now) if more > 0 else [])]


def _pending(seen: JobState, count: int) -> Iterator[int]:
    """The first indexes that are neither done nor tried now."""
    taken = seen.succeeded_indexes | seen.failed_indexes | {index_of(pod) for pod in seen.active}
    if waits_for_end(seen.job):
        taken |= {index_of(pod) for pod in seen.pods if pod.metadata.deletion_timestamp}
    for index in range(seen.job.spec.completions or 0):
        if count == 0:
            return
        if index not in taken:
            count -= 1
            yield index


def _independent(seen: JobState, count: int) -> JobStep:
    last, pauses = kept(seen), list[float]()
    pods = list[Pod]()
    for index in _pending(seen, count):
        failed = last.get(index)
        if failed is not None and (pause := remaining(seen, failed)):
            pauses.append(pause)
        else:
            pods.append(new_pod(seen.job, index, before(seen, failed) if failed is not None else Before()))
    return JobStep(make=tuple(pods), again=min(pauses) if pauses else None)


def new_pod(job: Job, index: int | None = None, failed: Before | None = None) -> Pod:
    """Its name is generated from the job's; of an index it is told in its annotation, label, host name and
    environment."""
    pod = from_template(job.spec.template, job)
    meta = pod.metadata
    finalizers = meta.finalizers if FINALIZER in meta.finalizers else (*meta.finalizers, FINALIZER)
    meta = replace(meta, finalizers=finalizers)
    if index is None:
        return replace(pod, metadata=meta)
    annotations = {**meta.annotations, ANNOTATION: str(index)}
    if failed is not None:
        annotations[FAILURES] = str(failed.failures)
        if failed.ignored:
            annotations[IGNORED] = str(failed.ignored)
    meta = replace(
        meta,
        generate_name=f"{_short(job.metadata.name, index)}-",
        labels={**meta.labels, ANNOTATION: str(index)},
        annotations=annotations,
    )
    spec = replace(
        pod.spec,
        hostname=f"{job.metadata.name}-{index}",
        init_containers=tuple(map(_with_index, pod.spec.init_containers)),
        containers=tuple(map(_with_index, pod.spec.containers)),
    )
    return replace(pod, metadata=meta, spec=spec)


def _short(name: str, index: int) -> str:
    """The job's name is cut where the whole would be too long for a generated one."""
    end = f"-{index}"
    return name[: 63 - 5 - 1 - len(end)] + end


def _with_index(container: Container) -> Container:
    if any(variable.name == ENVIRONMENT for variable in container.env):
        return container
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{ANNOTATION}']"))
    return replace(container, env=(*container.env, EnvVar(name=ENVIRONMENT, value_from=source)))
