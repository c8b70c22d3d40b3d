"""Completion indexes: sets of numbers, written as `1,3-5,7`."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from podfit.api.core.v1.pods.types import Pod

ANNOTATION = "batch.kubernetes.io/job-completion-index"
"""Also the label of that name."""


def index_of(pod: Pod) -> int | None:
    """None for a pod that has none that can be read."""
    text = pod.metadata.annotations.get(ANNOTATION, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None


def parse(text: str, most: int) -> frozenset[int]:
    """Those below `most`; what cannot be read is passed over."""
    return frozenset(index for span in text.split(",") for index in _span(span, most))


def _span(text: str, most: int) -> Iterator[int]:
    first, _, last = text.partition("-")
    if first.isdecimal() and (not last or last.isdecimal()):
        yield from range(int(first), min(int(last or first) + 1, most))


def shown(indexes: Iterable[int]) -> str:
    """Two that follow one another are listed, more are a span, as upstream writes them."""
    spans: list[str] = []
    for _, run in groupby(enumerate(sorted(indexes)), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        match len(numbers):
            case 1 | 2:
                spans += map(str, numbers)
            case _:
                spans.append(f"{numbers[0]}-{numbers[-1]}")
    return ",".join(spans)
