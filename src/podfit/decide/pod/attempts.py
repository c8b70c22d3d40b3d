"""Crash protection: which pods a node may not start again after the kubelet ended in the middle of their work.

    started     work on the pod began beside work on others; removed when a turn of it is over
    suspect     the node ended while it stood there: the next start tries the pod alone
    alone       it is being tried while no other work begins
    aside       the node ended during that: the pod is left alone until it changes

So a pod that ends its node does so twice, and a pod that was only beside it is tried for a moment and runs.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from podfit.api.core.v1.pods.types import Pod


class Mark(StrEnum):
    STARTED = "started"
    SUSPECT = "suspect"
    ALONE = "alone"
    ASIDE = "aside"


class AttemptVerdict(StrEnum):
    RUN = "run"
    TRY_ALONE = "try alone"
    SET_ASIDE = "set aside"


class AttemptRecord(msgspec.Struct, frozen=True):
    """`form` changes when the pod is another piece of work."""

    form: str
    mark: Mark


def form_of(pod: Pod) -> str:
    """A new generation, or the pod's deletion."""
    return f"{pod.metadata.generation}{'-' if pod.metadata.deletion_timestamp is not None else ''}"


def after_crash(notes: Mapping[str, AttemptRecord]) -> dict[str, AttemptRecord]:
    """What stood there when the node ended without a word, as the next start sees it; by UID.

    Who was tried alone is only to blame if no other work had begun meanwhile.
    """
    beside = any(note.mark is Mark.STARTED for note in notes.values())
    blamed = {Mark.STARTED: Mark.SUSPECT, Mark.ALONE: Mark.SUSPECT if beside else Mark.ASIDE}
    return {uid: AttemptRecord(note.form, blamed.get(note.mark, note.mark)) for uid, note in notes.items()}


def after_stop(notes: Mapping[str, AttemptRecord]) -> dict[str, AttemptRecord]:
    """The same after the node was stopped: work that was cut short proves nothing."""
    kept = {Mark.SUSPECT: Mark.SUSPECT, Mark.ALONE: Mark.SUSPECT, Mark.ASIDE: Mark.ASIDE}
    return {uid: AttemptRecord(note.form, kept[note.mark]) for uid, note in notes.items() if note.mark in kept}


def verdict(note: AttemptRecord | None, form: str) -> AttemptVerdict:
    if note is None or note.mark in (Mark.STARTED, Mark.ALONE):
        return AttemptVerdict.RUN
    if note.mark is Mark.ASIDE and note.form == form:
        return AttemptVerdict.SET_ASIDE
    return AttemptVerdict.TRY_ALONE
