"""Resources by pod UID, as the kubelet asks for them; `Checkpoint` keeps them on disk as well."""

from collections.abc import Callable, Collection, Mapping

from podfit.decide.pod.allocated import PodResources
from podfit.net.supervisor import Supervisor


class Entries:
    """In memory only, for a simulated node: its containers do not survive it either, and the API has the last status of
    its pods, from which `kubelet.allocation.rebuild` makes the entries again."""

    def __init__(self, name: str) -> None:
        self._entries: dict[str, PodResources] = {}
        self.on_put: Callable[[Mapping[str, PodResources]], None] = lambda _changes: None  # once they are visible
        self.supervisor = Supervisor(name)

    @property
    def is_lost(self) -> bool:
        """Whether what was there before this process has to be rebuilt."""
        return True

    @property
    def uids(self) -> Collection[str]:
        return self._entries.keys()

    @property
    def entries(self) -> Mapping[str, PodResources]:
        """All of them, by pod UID; a copy."""
        return dict(self._entries)

    def get(self, uid: str) -> PodResources | None:
        return self._entries.get(uid)

    async def put(self, changes: Mapping[str, PodResources]) -> None:
        self._entries.update(changes)
        self.on_put(changes)

    async def catch_up(self) -> None:
        """Write what could not be written."""

    def restore(self, entries: Mapping[str, PodResources]) -> None:
        """Take over what was rebuilt."""
        self._entries = {**entries, **self._entries}

    def forget(self, uid: str) -> None:
        """Drop a pod that is gone."""
        self._entries.pop(uid, None)

    def retain(self, uids: Collection[str]) -> None:
        """Drop every pod but these."""
        self._entries = {uid: resources for uid, resources in self._entries.items() if uid in uids}

    async def close(self) -> None:
        """The end of the kubelet."""
