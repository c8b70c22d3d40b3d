"""One checkpoint file in its upstream form, and the journal of what changed since it was written.

    a pod is new, or the journal is full or not ready     file, written whole
    pods that are known change, or are gone               journal, one record
    a second without a change                             file, and the journal is cleared for what comes next

A file that an earlier podfit wrote has no journal beside it, and one that it wrote over ours makes the records those of
another file.
"""

import itertools
import logging
from collections.abc import Callable, Collection
from pathlib import Path

from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.checkpoints.format import Texts, apply, change, load, whole
from podfit.kubelet.checkpoints.journal import Journal

log = logging.getLogger(__name__)

Write = Callable[[Path, bytes], None]
Entries = dict[str, PodResources]


def read(path: Path, journal: Journal | None) -> Entries:
    """Raises FileNotFoundError, Damaged, OSError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if journal is not None:
            journal.read(b"")
        raise
    entries = load(content)
    for record in journal.read(content) if journal is not None else ():
        apply(entries, record)
    return entries


def journal_of(path: Path, *, durable: bool = True) -> Journal:
    """The one that belongs to a checkpoint."""
    return Journal(path.with_name(f"{path.name}.journal"), durable=durable)


class Disk:
    """Each call waits for the disk and raises OSError; then it has to be taken for not done."""

    def __init__(self, path: Path, write: Write, journal: Journal | None) -> None:
        self.path = path
        self._write = write
        self._journal = journal

    @property
    def quick(self) -> bool:
        """Whether a change is a record."""
        return self._journal is not None and self._journal.ready

    @property
    def whole(self) -> bool:
        """Whether the file alone holds everything."""
        return self._journal is None or self._journal.empty

    def read(self) -> Entries:
        return read(self.path, self._journal)

    def save(self, texts: Texts, put: Collection[str], drop: Collection[str]) -> None:
        """Make `texts` what is there; it differs from what was in these UIDs."""
        if self._journal is not None and self._journal.ready:
            try:
                if self._journal.append(change((texts[uid] for uid in put), drop)):
                    return
            except OSError as error:
                log.warning("journal not written, the file is instead path=%s error=%s", self._journal.path, error)
        self.replace(texts)

    def replace(self, texts: Texts) -> None:
        content = whole(texts)
        if self._journal is None:
            self._write(self.path, content)
            return
        self._journal.leave()
        self._write(self.path, content)
        self._journal.follow(content)

    def prepare(self) -> None:
        """Once the file is whole: make the journal ready for what comes next."""
        if self._journal is not None:
            self._journal.prepare()

    def put_aside(self) -> Path:
        """File and journal get the first names that are free, so that no earlier evidence is lost; the file's."""
        numbers = itertools.chain([""], map(".{}".format, itertools.count(2)))
        names = (self.path.with_name(f"{self.path.name}.damaged{number}") for number in numbers)
        aside = next(path for path in names if not path.exists())
        self.path.replace(aside)
        if self._journal is not None and self._journal.path.exists():
            self._journal.path.replace(aside.with_name(f"{aside.name}.journal"))
        return aside
