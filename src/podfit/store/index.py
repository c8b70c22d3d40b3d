"""What is current, in memory: reads of the present never touch a disk.

Values are kept as bytes. Ten thousand objects as dicts would make every full garbage collection pause the event loop for
150 ms; as bytes they cost it nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from podfit.store.protocol import Change, Page, Record


class Index:
    """Records by key, and the keys in order."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = {record.key: record for record in records}
        self._keys = sorted(self._records)

    def get(self, key: str) -> Record | None:
        return self._records.get(key)

    def apply(self, change: Change) -> None:
        key = change.record.key
        if change.deleted:
            del self._records[key]
            del self._keys[bisect_left(self._keys, key)]
            return
        if key not in self._records:
            self._keys.insert(bisect_left(self._keys, key), key)
        self._records[key] = change.record

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        start = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after) if after else 0)
        end = bisect_left(self._keys, upper_bound(prefix))
        stop = min(end, start + limit) if limit else end
        records = [self._records[key] for key in self._keys[start:stop]]
        return Page(records, revision, max(0, end - max(start, stop)))


def upper_bound(prefix: str) -> str:
    """The smallest string above every string that starts with `prefix`."""
    return prefix + "\U0010ffff"
