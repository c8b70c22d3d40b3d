"""Probe results of containers by runtime id. A container without one counts as healthy."""

from collections.abc import Mapping

import msgspec

from podfit.decide.pod.probing import ProbeKind


class Health(msgspec.Struct, frozen=True):
    """`unstarted`: the startup probe has not passed. `unready`: that, or the readiness probe does not pass. `failed`:
    it has to be restarted, because of a probe of this kind.
    """

    unstarted: frozenset[str] = frozenset()
    unready: frozenset[str] = frozenset()
    failed: Mapping[str, ProbeKind] = msgspec.field(default_factory=dict)


WELL = Health()
