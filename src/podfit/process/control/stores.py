"""Opens the store that a process is configured with."""

from collections.abc import Sequence
from pathlib import Path

from podfit.net.inline_executor import InlineExecutor
from podfit.net.supervisor import Supervisor
from podfit.store.encrypted import ENCRYPTED, EncryptedStore, Rule
from podfit.store.etcd.options import PREFIX, EtcdOptions
from podfit.store.memory import memory_store
from podfit.store.protocol import Store, StoreError
from podfit.store.sqlite import sqlite_store


def embedded_store(
    path: Path, rules: Sequence[Rule] = (), *, make: bool = True, watcher: Supervisor | None = None
) -> Store:
    """Open the store in a file, or make it where `make` allows. Raises StoreError; StoreDamaged when it is damaged.

    `watcher` hears when the store breaks.
    """
    store = sqlite_store(path, make=make)
    if watcher is not None:
        watcher.watch(store.supervisor)
    return EncryptedStore(store, rules) if rules or store.holds(ENCRYPTED) else store


def passing_store() -> Store:
    """A store that ends with the process, without a thread of its own."""
    return memory_store(InlineExecutor)


async def etcd_store(options: EtcdOptions, rules: Sequence[Rule] = (), *, watcher: Supervisor | None = None) -> Store:
    """Open the store on etcd, with upstream's prefix unless the options say another. Raises StoreError.

    `watcher` hears when the store breaks.
    """
    try:
        from podfit.store.etcd.opening import etcd_store as open_etcd
    except ImportError as error:
        raise StoreError(f"etcd needs gRPC: pip install 'podfit[node]' ({error})") from error
    store = await open_etcd(options, root=f"{PREFIX}/")
    if watcher is not None:
        watcher.watch(store.supervisor)
    return EncryptedStore(store, rules)
