"""The index of current values, in memory: reads of the present never touch a disk.

Values are kept as bytes. Ten thousand objects as dicts would make every full garbage collection pause the event loop
for 150 ms; as bytes they cost it nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from podfit.core.bounded_cache import cached_where_short
from podfit.store.protocol import Change, Page, Record

_LAST = "\U0010ffff"


class Index:
    """Records by key, and the keys in order (of code points, which is also the order of their UTF-8 bytes)."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = {record.key: record for record in records}
        self._keys = sorted(self._records)
        self._stamps: dict[str, int] = {}

    def get(self, key: str) -> Record | None:
        return self._records.get(key)

    def stamp(self, prefix: str) -> int:
        """How many changes there were under the prefix since it was first asked about."""
        return self._stamps.setdefault(prefix, 0)

    def apply(self, change: Change) -> None:
        key = change.record.key
        for prefix in self._stamps:
            if key.startswith(prefix):
                self._stamps[prefix] += 1
        if change.deleted:
            del self._records[key]
            del self._keys[bisect_left(self._keys, key)]
            return
        if key not in self._records:
            self._keys.insert(bisect_left(self._keys, key), key)
        self._records[key] = change.record

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        start = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        high = prefix_end(prefix)
        end = len(self._keys) if high is None else bisect_left(self._keys, high)
        stop = min(end, start + limit) if limit else end
        records = [self._records[key] for key in self._keys[start:stop]]
        return Page(records, revision, max(0, end - max(start, stop)))


@cached_where_short(4096, longest=512)
def prefix_end(prefix: str) -> str | None:
    """The smallest string above every string that starts with `prefix`; None when there is none."""
    head = prefix.rstrip(_LAST)
    if not head:
        return None
    following = ord(head[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # surrogates are no characters
        following = 0xE000
    return head[:-1] + chr(following)
