"""The index of current values, in memory: reads of the present never touch a disk.

Values are kept as bytes. Ten thousand objects as dicts would make every full garbage collection pause the event loop
for 150 ms; as bytes they cost it nothing. Records lie in blocks of some hundred, in the order of their keys. A write
makes one block anew and leaves the others, so a page is a look at the blocks of one moment: whoever reads a hundred
thousand records holds nobody up, and still sees the same moment to the end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeAlias, overload

from podfit.core.bounded_cache import cached_where_short
from podfit.store.protocol import Change, Page, Record

_LAST = "\U0010ffff"
LARGEST, SMALLEST = 256, 32
"""Records of a block: a larger one is divided, a smaller one joined to its neighbour."""


class Block:
    """`shared`: a page has these very records, so they are changed in a copy. `size` is the bytes of their values."""

    __slots__ = ("keys", "records", "shared", "size")

    def __init__(self, records: list[Record]) -> None:
        self.keys = [record.key for record in records]
        self.records = records
        self.size = _size(records)
        self.shared = False

    def own(self) -> list[Record]:
        """The records, to be changed."""
        if self.shared:
            self.records, self.shared = self.records.copy(), False
        return self.records


Place: TypeAlias = tuple[int, int]
"""A block and a place in it."""


class Records(Sequence[Record]):
    """The records of a long page as blocks hold them, none of them looked at yet."""

    def __init__(self, parts: Sequence[list[Record]], inner_size: int) -> None:
        """`inner_size` is the bytes of all values but those of the first and last part."""
        self._parts, self._inner_size = parts, inner_size
        self._count = sum(map(len, parts))

    @cached_property
    def size(self) -> int:
        """Bytes of the values."""
        return self._inner_size + _size(self._parts[0]) + _size(self._parts[-1])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(self._parts)

    def __eq__(self, other: object) -> bool:
        """Compares as a list of the same records does. Parts that nothing was written to are the very same ones."""
        if not isinstance(other, Records | list):
            return NotImplemented
        if isinstance(other, Records) and self._parts == other._parts:
            return True
        return self._count == len(other) and all(map(_same, self, other))

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        if isinstance(index, slice):
            return [*self][index]
        at = index + self._count if index < 0 else index
        for part in self._parts if at >= 0 else ():
            if at < len(part):
                return part[at]
            at -= len(part)
        raise IndexError(index)


def _same(one: Record, other: Record) -> bool:
    return one is other or one == other


class Index:
    """Records by key, and in the order of their keys (of code points, which is also the order of their UTF-8 bytes)."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = {record.key: record for record in records}
        ordered = sorted(self._records.values(), key=_key)
        half = LARGEST // 2
        self._blocks = [Block(ordered[start : start + half]) for start in range(0, len(ordered), half)]
        self._firsts = [block.keys[0] for block in self._blocks]
        self._stamps: dict[str, int] = {}

    def get(self, key: str) -> Record | None:
        return self._records.get(key)

    def stamp(self, prefix: str) -> int:
        """How many changes there were under the prefix since it was first asked about."""
        return self._stamps.setdefault(prefix, 0)

    def renewed(self, records: Iterable[Record]) -> "Index":
        """An index of these records instead. What has changed of them is not known: stamps are others than before."""
        index = Index(records)
        index._stamps = {prefix: stamp + 1 for prefix, stamp in self._stamps.items()}
        return index

    def apply(self, change: Change) -> None:
        record = change.record
        for prefix in self._stamps:
            if record.key.startswith(prefix):
                self._stamps[prefix] += 1
        if change.deleted:
            self._remove(record.key)
        elif record.key in self._records:
            self._replace(record)
        else:
            self._insert(record)

    def _replace(self, record: Record) -> None:
        number, place = self._place(record.key)
        block = self._blocks[number]
        block.size += len(record.value) - len(block.records[place].value)
        block.own()[place] = self._records[record.key] = record

    def _insert(self, record: Record) -> None:
        self._records[record.key] = record
        if not self._blocks:
            self._put(0, 0, [record])
            return
        number, place = self._place(record.key)
        block = self._blocks[number]
        block.size += len(record.value)
        block.keys.insert(place, record.key)
        block.own().insert(place, record)
        self._firsts[number] = block.keys[0]
        if len(block.keys) > LARGEST:
            self._put(number, 1, block.records)

    def _remove(self, key: str) -> None:
        number, place = self._place(key)
        block = self._blocks[number]
        block.size -= len(self._records.pop(key).value)
        del block.keys[place]
        del block.own()[place]
        if not block.keys:
            self._put(number, 1, [])
        elif len(block.keys) < SMALLEST and number + 1 < len(self._blocks):
            self._put(number, 2, block.records + self._blocks[number + 1].records)
        else:
            self._firsts[number] = block.keys[0]

    def _put(self, number: int, count: int, records: list[Record]) -> None:
        """These records instead of so many blocks."""
        half = len(records) // 2
        parts = [records] if len(records) <= LARGEST else [records[:half], records[half:]]
        blocks = [Block(part) for part in parts if part]
        self._blocks[number : number + count] = blocks
        self._firsts[number : number + count] = [block.keys[0] for block in blocks]

    def _place(self, key: str) -> Place:
        """Where the key is, or would be."""
        number = max(bisect_right(self._firsts, key) - 1, 0)
        return number, bisect_left(self._blocks[number].keys, key) if self._blocks else 0

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        start = max(self._place(prefix), self._behind(after))
        high = prefix_end(prefix)
        end = (len(self._blocks), 0) if high is None else self._place(high)
        count = self._count(start, end)
        if not limit or limit >= count:
            return Page(self._between(start, end, count), revision, 0)
        number, place = start
        left = place + limit
        while left > (size := len(self._blocks[number].records)):
            number, left = number + 1, left - size
        return Page(self._between(start, (number, left), limit), revision, count - limit)

    def _behind(self, key: str) -> Place:
        number, place = self._place(key)
        keys = self._blocks[number].keys if self._blocks else ()
        return number, place + (place < len(keys) and keys[place] == key)

    def _count(self, start: Place, end: Place) -> int:
        if start >= end:
            return 0
        (first, begin), (last, stop) = start, end
        return sum(len(block.records) for block in self._blocks[first:last]) - begin + stop

    def _between(self, start: Place, end: Place, count: int) -> Sequence[Record]:
        if not count:
            return []
        (first, begin), (last, stop) = start, end
        blocks = self._blocks[first : last + 1]
        parts = [block.records for block in blocks]
        if last < len(self._blocks):
            parts[-1] = parts[-1][:stop]
        parts[0] = parts[0][begin:]
        if len(parts) == 1:
            return parts[0]
        if count <= LARGEST:
            return list(chain.from_iterable(parts))
        for block in blocks:
            block.shared = True
        return Records(parts, sum(block.size for block in blocks[1:-1]))


def _key(record: Record) -> str:
    return record.key


def size_of(records: Sequence[Record]) -> int:
    """Bytes of the values."""
    return records.size if isinstance(records, Records) else _size(records)


def _size(records: Iterable[Record]) -> int:
    return sum(len(record.value) for record in records)


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
