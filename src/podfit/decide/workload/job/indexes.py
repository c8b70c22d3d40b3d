"""Completion indexes: sets of numbers, written as `1,3-5,7`."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import chain, groupby, islice

from podfit.api.core.v1.pods.types import Pod

ANNOTATION = "batch.kubernetes.io/job-completion-index"
"""Also the label of that name."""
MOST_INDEXES = 1_000_000
"""Whoever writes the status of a job can name 2^31 in a few bytes; upstream counts spans and holds no indexes."""


def index_of(pod: Pod) -> int | None:
    """None for a pod that has none that can be read."""
    text = pod.metadata.annotations.get(ANNOTATION, "")
    return _number(text)


def parse(text: str, most: int) -> frozenset[int]:
    """Those below `most`; what cannot be read is passed over, and what comes after MOST_INDEXES."""
    spans = (_span(span, most) for span in text.split(","))
    return frozenset(islice(chain.from_iterable(spans), MOST_INDEXES))


class Spans:
    """The indexes of a text, counted and looked up without being held: a few bytes can name two billion."""

    def __init__(self, text: str, most: int) -> None:
        self._first: list[int] = []
        self._end: list[int] = []
        for span in sorted((_span(span, most) for span in text.split(",")), key=lambda span: span.start):
            if not span:
                continue
            if self._end and span.start <= self._end[-1]:
                self._end[-1] = max(self._end[-1], span.stop)
            else:
                self._first.append(span.start)
                self._end.append(span.stop)

    def __len__(self) -> int:
        return sum(self._end) - sum(self._first)

    def __contains__(self, index: int) -> bool:
        place = bisect_right(self._first, index) - 1
        return place >= 0 and index < self._end[place]


def _span(text: str, most: int) -> range:
    first, _, last = text.partition("-")
    begin, end = _number(first), _number(last or first)
    return range(begin, min(end + 1, most)) if begin is not None and end is not None else range(0)


def _number(text: str) -> int | None:
    """A whole number of 32 bits has ten digits at most."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None


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
