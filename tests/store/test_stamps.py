"""A number that tells whether a read would show something else."""

import pytest

from podfit.store.encrypted import EncryptedStore
from podfit.store.logged import LoggedStore
from podfit.store.protocol import RevisionConflict


async def test_it_changes_with_every_write_under_the_prefix_and_with_no_other(logged: LoggedStore) -> None:
    seen = [logged.stamp("/roles/")]
    made = await logged.create("/roles/a", b"1")
    seen.append(logged.stamp("/roles/"))
    await logged.create("/bindings/a", b"1")
    assert logged.stamp("/roles/") == seen[-1]
    made = await logged.update("/roles/a", b"2", expected=made.mod_revision)
    seen.append(logged.stamp("/roles/"))
    with pytest.raises(RevisionConflict):
        await logged.update("/roles/a", b"3", expected=1)
    assert logged.stamp("/roles/") == seen[-1]
    await logged.delete("/roles/a", expected=made.mod_revision)
    seen.append(logged.stamp("/roles/"))
    assert len(set(seen)) == 4
    assert EncryptedStore(logged, ()).stamp("/roles/") == seen[-1]


async def test_it_has_changed_when_the_read_has(logged: LoggedStore) -> None:
    """Whoever is told of a write, by its answer or by a watch, finds the stamp changed."""
    before, told = logged.stamp("/a"), list[int | None]()
    watch = logged.watch("/a", after=logged.revision)
    watch.on_news(lambda: told.append(logged.stamp("/a")))
    writing = logged.create("/a", b"")
    assert logged.stamp("/a") == before
    await writing
    assert told == [logged.stamp("/a")] != [before]
