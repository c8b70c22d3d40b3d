"""Audit annotations that the server adds to the event of the current request."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[dict[str, str] | None] = ContextVar("audit annotations", default=None)


@contextmanager
def collecting(annotations: dict[str, str]) -> Iterator[None]:
    """What is annotated meanwhile, also by tasks that are begun meanwhile, is in `annotations`."""
    token = _CURRENT.set(annotations)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def annotate(annotations: Mapping[str, str]) -> None:
    """Nothing where no audit log is kept."""
    current = _CURRENT.get()
    if current is not None:
        current.update(annotations)
