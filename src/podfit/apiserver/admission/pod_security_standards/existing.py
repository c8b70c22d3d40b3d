"""Warnings about existing pods when a namespace's enforce level changes. The pods stay."""

from collections.abc import Iterable, Sequence

from podfit.apiserver.admission.pod_security_standards.findings import Violation
from podfit.apiserver.admission.pod_security_standards.policy import LevelVersion, Policy, stricter

MOST_PODS = 3000
SECONDS = 1.0
"""How many are looked at, and for how long."""


def has_to_look(new: Policy, old: Policy) -> bool:
    """Whether pods that are there may violate the new enforce level and did not violate the old one."""
    after, before = new.enforce, old.enforce
    if after == before or after.level == "privileged":
        return False
    return after.minor != before.minor or stricter(after.level, before.level)


def in_turn(pods: Iterable[tuple[str, str]]) -> list[str]:
    """The pods' names in the order to look at them, given each with its controller's uid or an empty one: first one of
    each controller and those without, then the others."""
    first, others, seen = [], [], set()
    for name, controller in pods:
        if controller and controller in seen:
            others.append(name)
        else:
            first.append(name)
            seen.add(controller)
    return first + others


class Tally:
    """Counts pods by what they violate."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, int]] = {}  # reasons: first name, count
        self.checked = 0

    def add(self, name: str, violations: Sequence[Violation]) -> None:
        self.checked += 1
        if violations:
            reasons = ", ".join(violation.reason for violation in violations)
            first, count = self._pods.get(reasons, (name, 0))
            self._pods[reasons] = min(first, name), count + 1

    def warnings(self, namespace: str, wanted: LevelVersion, *, total: int) -> list[str]:
        """`total` pods were there."""
        told = []
        if self.checked < total:
            checked = f"the first {self.checked} of {total} existing pods"
            told.append(f"new PodSecurity enforce level only checked against {checked}")
        if self._pods:
            text = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{wanted}"'
            told.append(text)
        return told + sorted(f"{_who(*pods)}: {reasons}" for reasons, pods in self._pods.items())


def _who(first: str, count: int) -> str:
    if count == 1:
        return first
    return f"{first} (and {count - 1} other {'pod' if count == 2 else 'pods'})"
