"""The index of records: pages in order, of one moment, whatever is written meanwhile."""

import random
from collections.abc import Sequence

import pytest

from podfit.store import index
from podfit.store.index import Index, Records, size_of
from podfit.store.protocol import Change, Record

KINDS = ("/a/", "/b/", "/bb/", "/c/")
PREFIXES = ("", *KINDS, "/b", "/d/", "/a/1", "\U0010ffff")


class Model:
    """The same, sorted anew for every page."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = {record.key: record for record in records}

    def apply(self, change: Change) -> None:
        if change.deleted:
            del self.records[change.record.key]
        else:
            self.records[change.record.key] = change.record

    def page(self, prefix: str, after: str, limit: int) -> tuple[list[Record], int]:
        keys = sorted(key for key in self.records if key.startswith(prefix) and key > after)
        return [self.records[key] for key in keys[: limit or None]], max(0, len(keys) - limit) if limit else 0


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LARGEST", 6)
    monkeypatch.setattr(index, "SMALLEST", 2)


def change(generator: random.Random, model: Model, revision: int) -> Change:
    key = f"{generator.choice(KINDS)}{generator.randrange(60)}"
    before = model.records.get(key)
    gone = before is not None and generator.random() < 0.5
    return Change(gone, Record(key, b"x" * generator.randrange(9), 1, revision), before)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", range(40))
def test_it_has_the_pages_of_a_sorted_list(seed: int) -> None:
    generator = random.Random(seed)
    keys = {f"{generator.choice(KINDS)}{generator.randrange(60)}" for _ in range(generator.randrange(80))}
    begun = [Record(key, b"begun", 1, 1) for key in sorted(keys)]
    indexed, model = Index(begun), Model(begun)
    for revision in range(2, 80):
        made = change(generator, model, revision)
        indexed.apply(made)
        model.apply(made)
        assert indexed.get(made.record.key) == model.records.get(made.record.key)
        prefix, limit = generator.choice(PREFIXES), generator.choice((0, 1, 3, 7, 20))
        after = generator.choice(("", "/a/3", made.record.key, "/b/", "/zz"))
        page = indexed.page(prefix, after=after, limit=limit, revision=revision)
        records, remaining = model.page(prefix, after, limit)
        assert ([*page.records], page.remaining) == (records, remaining)
        assert size_of(page.records) == sum(len(record.value) for record in records)


@pytest.mark.usefixtures("small_blocks")
def test_a_page_stays_as_it_was() -> None:
    generator = random.Random(1)
    begun = [Record(f"/a/{number:03}", b"begun", 1, 1) for number in range(100)]
    indexed, model = Index(begun), Model(begun)
    taken = []
    for revision in range(2, 300):
        page = indexed.page("", after="", limit=0, revision=revision).records
        taken.append((page, model.page("", "", 0)[0]))
        made = change(generator, model, revision)
        indexed.apply(made)
        model.apply(made)
    assert all(isinstance(page, Records) for page, _ in taken)
    assert all([*page] == records for page, records in taken)
    assert all((page[0], page[-1], len(page)) == (records[0], records[-1], len(records)) for page, records in taken)


def test_pages_are_equal_as_long_as_nothing_was_written_in_them() -> None:
    indexed = Index(Record(f"/a/{number:05}", b"", 1, 1) for number in range(2000))
    before = indexed.page("/a/", after="", limit=0, revision=1).records
    record = Record("/b/1", b"", 2, 2)
    indexed.apply(Change(False, record, None))
    assert indexed.page("/a/", after="", limit=0, revision=2).records == before
    indexed.apply(Change(False, Record("/a/01000", b"", 1, 3), before[1000]))
    after = indexed.page("/a/", after="", limit=0, revision=3).records
    assert after != before
    assert [one.key for one, other in zip(after, before, strict=True) if one != other] == ["/a/01000"]
    with pytest.raises(IndexError):
        before[2000]
    assert before[10:12] == [*before][10:12]
