"""Violations in upstream's words, and the containers that checks look at.

Names come from the pod's author and there may be 100,000 of them: a list is cut after `MOST_NAMED`, a name after
`LONGEST_NAME` characters, so a message stays below 100 KB whatever the pod.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from podfit.api.core.v1.pods.containers import Container, EphemeralContainer
from podfit.api.core.v1.pods.security import PodSecurityContext, SecurityContext
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.v1.types import ObjectMeta

MOST_NAMED, LONGEST_NAME = 100, 256
WINDOWS = "windows"
AnyContainer = Container | EphemeralContainer
NO_CONTEXT, NO_POD_CONTEXT = SecurityContext(), PodSecurityContext()


class Violation(msgspec.Struct, frozen=True):
    """`reason` is the short name, `detail` says who does it."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


Check = Callable[[ObjectMeta, PodSpec], Violation | None]


def containers_of(spec: PodSpec) -> Iterator[AnyContainer]:
    yield from spec.init_containers
    yield from spec.containers
    yield from spec.ephemeral_containers


def contexts_of(spec: PodSpec) -> Iterator[tuple[str, SecurityContext]]:
    """Each container's name and security context."""
    for container in containers_of(spec):
        yield container.name, container.security_context or NO_CONTEXT


def pod_context_of(spec: PodSpec) -> PodSecurityContext:
    return spec.security_context or NO_POD_CONTEXT


def is_windows(spec: PodSpec) -> bool:
    return spec.os is not None and spec.os.name == WINDOWS


def in_user_namespace(spec: PodSpec) -> bool:
    return spec.host_users is False


def quoted(names: Iterable[str]) -> str:
    return _joined([f'"{_cut(name)}"' for name in names])


def comma_list(texts: Iterable[str]) -> str:
    return _joined([_cut(text) for text in texts])


def _joined(texts: Sequence[str]) -> str:
    left_out = len(texts) - MOST_NAMED
    return ", ".join(texts if left_out <= 0 else [*texts[:MOST_NAMED], f"and {left_out} more"])


def plural(word: str, things: Collection[object]) -> str:
    return word if len(things) == 1 else f"{word}s"


def uses(things: Collection[object]) -> str:
    return "uses" if len(things) == 1 else "use"


def named(what: str, names: Sequence[str]) -> str:
    """`container "a"` or `containers "a", "b"`."""
    return f"{plural(what, names)} {quoted(names)}"


def setters(*, pod: bool, containers: Sequence[str]) -> str:
    """Who set something: `pod and container "a"`; empty when nobody did."""
    parts = (["pod"] if pod else []) + ([named("container", containers)] if containers else [])
    return " and ".join(parts)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…"
