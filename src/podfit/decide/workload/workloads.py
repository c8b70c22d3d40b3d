"""What the API server sets in daemon sets and jobs when they are stored."""

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.defaults import TEMPLATE_GENERATION
from podfit.api.batch.v1.types import NAME_LABELS, UID_LABELS, Job
from podfit.api.meta.v1.types import LabelSelector

LONGEST_COUNT = 18  # digits; an annotation can hold any


def new_daemon_set(daemons: DaemonSet) -> DaemonSet:
    """Templates are counted from 1."""
    return _numbered(daemons, max(_template_number(daemons), 1))


def changed_daemon_set(new: DaemonSet, old: DaemonSet) -> DaemonSet:
    """The count of templates is the server's: it grows when the template changes."""
    return _numbered(new, _template_number(old) + (new.spec.template != old.spec.template))


def _template_number(daemons: DaemonSet) -> int:
    text = daemons.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_COUNT else 0


def _numbered(daemons: DaemonSet, number: int) -> DaemonSet:
    meta = daemons.metadata
    annotations = {**meta.annotations, TEMPLATE_GENERATION: str(number)}
    return replace(daemons, metadata=replace(meta, annotations=annotations))


def new_job(job: Job) -> Job:
    """A job that does not bring its own selector: its pods bear its name and uid, and the uid finds them.

    A job that has its pods' labels, as one without labels got by default, has what is added to them as well: in
    upstream's server the two are one map.
    """
    meta, template = job.metadata, job.spec.template
    labels = template.metadata.labels
    shared = not meta.labels or meta.labels == labels
    if not job.spec.manual_selector:
        own = dict.fromkeys(NAME_LABELS, meta.name) | dict.fromkeys(UID_LABELS, meta.uid)
        labels = own | labels
        selector = job.spec.selector or LabelSelector()
        found = {UID_LABELS[0]: meta.uid} | selector.match_labels
        template = replace(template, metadata=replace(template.metadata, labels=labels))
        job = replace(job, spec=replace(job.spec, template=template, selector=replace(selector, match_labels=found)))
    return job if not shared else replace(job, metadata=replace(meta, labels=labels))
