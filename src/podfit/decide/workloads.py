"""What a controller of pods becomes when it is stored, beyond what its author wrote."""

from msgspec.structs import replace

from podfit.api.apps.daemonsets import DaemonSet
from podfit.api.workload_defaults import TEMPLATE_GENERATION


def new_daemon_set(daemons: DaemonSet) -> DaemonSet:
    """Templates are counted from 1."""
    return _numbered(daemons, max(_template_number(daemons), 1))


def changed_daemon_set(new: DaemonSet, old: DaemonSet) -> DaemonSet:
    """The count of templates is the server's: it grows when the template changes."""
    return _numbered(new, _template_number(old) + (new.spec.template != old.spec.template))


def _template_number(daemons: DaemonSet) -> int:
    text = daemons.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _numbered(daemons: DaemonSet, number: int) -> DaemonSet:
    meta = daemons.metadata
    annotations = {**meta.annotations, TEMPLATE_GENERATION: str(number)}
    return replace(daemons, metadata=replace(meta, annotations=annotations))
