"""The CPU and memory managers: assignments to containers, durable before anybody relies on them.

A damaged file is set aside and the state is made anew: memory blocks from the pods as they are admitted again, CPUs
from what the containers that run are pinned to, so that nobody's CPUs move. A file of another policy or another machine
is no damage: it is refused, because the containers that it speaks of may still run.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from podfit.decide.managers import cpu as cpusets
from podfit.decide.managers import memory as memory_blocks
from podfit.decide.managers.cpu import NONE, Cpus, CpuState, show
from podfit.decide.managers.memory import MemoryState
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.checkpoints.file import Write
from podfit.kubelet.checkpoints.format import Damaged
from podfit.kubelet.disk.writer import DiskWriter, Hung
from podfit.kubelet.managers import state_files
from podfit.kubelet.managers.config import ManagerError, ManagersConfig
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)

CPU_FILE, MEMORY_FILE = "cpu_manager_state", "memory_manager_state"
State = TypeVar("State", CpuState, MemoryState)


class ResourceManagers:
    """`cpus` and `memory` are what is in force; None where the policy sets nothing aside.

    Raises ManagerError when the configuration or the files do not fit the machine.
    """

    def __init__(self, config: ManagersConfig, root: Path, writer: DiskWriter, *, write: Write = write_atomic) -> None:
        config.check()
        self._root, self._writer, self._write = root, writer, write
        self._busy = asyncio.Lock()
        self._stored: dict[str, bytes] = {}
        self.lost = False
        """The record of CPUs was damaged; `seen` is to be called before pods are admitted."""
        self.changed = asyncio.Event()
        """Set when containers may use other CPUs than before."""
        self.cpus = self._cpus(config)
        self.memory = self._memory(config)

    @property
    def pinning(self) -> bool:
        return self.cpus is not None

    # ------------------------------------------------------------------ what a container may use

    def cpuset(self, uid: str, container: str) -> Cpus:
        """The CPUs a container may run on; empty = no matter which."""
        if self.cpus is None:
            return NONE
        own = self.cpus.of(uid, container)
        return self.cpus.shared if own is None else own

    def mems(self, uid: str, container: str) -> str:
        """The NUMA nodes its memory has to come from; empty = no matter which."""
        block = self.memory.assigned.get(uid, {}).get(container) if self.memory is not None else None
        return "" if block is None else str(block.node)

    # ------------------------------------------------------------------ what changes

    async def keep(self, cpus: CpuState | None, memory: MemoryState | None) -> None:
        """Put a decision in force once it is on disk. CheckpointError: it is neither."""
        if cpus == self.cpus and memory == self.memory:
            return
        async with self._busy:
            await self._store(cpus, memory)
            if cpus is not self.cpus:
                self.changed.set()
            self.cpus, self.memory = cpus, memory

    def release(self, uid: str) -> None:
        """The pod is over. The disk hears of it with `flush`: a record that says too much is put right at the start."""
        if self.cpus is not None:
            before, self.cpus = self.cpus, cpusets.release(uid, self.cpus)
            if self.cpus is not before:
                self.changed.set()
        if self.memory is not None:
            self.memory = memory_blocks.release(uid, self.memory)

    def retain(self, uids: Collection[str]) -> None:
        """Release every pod but these."""
        known = (*(self.cpus.assigned if self.cpus else ()), *(self.memory.assigned if self.memory else ()))
        kept = set(uids)
        for uid in dict.fromkeys(known):
            if uid not in kept:
                self.release(uid)

    def seen(self, pinned: cpusets.Assignments) -> None:
        """What the containers that run are pinned to; they get it back when their pods are admitted."""
        if self.cpus is not None:
            self.cpus = replace(self.cpus, seen=pinned)

    async def give_up(self) -> None:
        """No container of this node runs any more. Raises CheckpointError."""
        self.retain(())
        await self.flush()

    async def flush(self) -> None:
        """Write what is in force. Raises CheckpointError."""
        async with self._busy:
            await self._store(self.cpus, self.memory)

    async def _store(self, cpus: CpuState | None, memory: MemoryState | None) -> None:
        contents = {} if cpus is None else {CPU_FILE: state_files.dump_cpus(cpus)}
        contents |= {} if memory is None else {MEMORY_FILE: state_files.dump_memory(memory)}
        for name, content in contents.items():
            if self._stored.pop(name, None) != content:
                try:
                    await self._writer.run(self._root / name, partial(self._write, self._root / name, content))
                except Hung as error:
                    raise CheckpointError(f"could not write {error}") from error
                except OSError as error:
                    raise CheckpointError(f"could not write {self._root / name}: {error}") from error
            self._stored[name] = content

    # ------------------------------------------------------------------ the start

    def _cpus(self, config: ManagersConfig) -> CpuState | None:
        path = self._root / CPU_FILE
        if config.cpu_policy == "none":
            _refuse_leftover(path, "none", state_files.CPU_POLICY)
            return None
        fresh = CpuState.fresh(config.topology, config.reserved_cpus)
        state, damaged = _restored(path, fresh, config.cpu_policy, lambda at: state_files.restored_cpus(at, fresh))
        self.lost = damaged
        log.info("CPU manager policy=static shared=%s reserved=%s", show(state.shared), show(state.reserved))
        return state

    def _memory(self, config: ManagersConfig) -> MemoryState | None:
        path = self._root / MEMORY_FILE
        if config.memory_policy == "None":
            _refuse_leftover(path, "None", state_files.MEMORY_POLICY)
            return None
        fresh = MemoryState(banks=config.banks)
        return _restored(path, fresh, config.memory_policy, lambda at: state_files.restored_memory(at, config.banks))[0]


def _restored(path: Path, fresh: State, policy: str, read: Callable[[bytes], State]) -> tuple[State, bool]:
    """The state in the file, and whether it was damaged."""
    try:
        return read(path.read_bytes()), False
    except FileNotFoundError:
        return fresh, False
    except Damaged as error:
        aside = path.with_name(path.name + ".damaged")
        path.replace(aside)
        log.warning("state set aside path=%s as=%s reason=%s", path, aside, error)
        return fresh, True
    except state_files.PolicyMismatch as error:
        why = f'configured policy "{policy}" differs from state checkpoint policy "{error}"'
        raise ManagerError(_refusal(path, why)) from error
    except state_files.OtherMachine as error:
        raise ManagerError(_refusal(path, f"it is about another machine: {error}")) from error


def _refuse_leftover(path: Path, policy: str, other: str) -> None:
    """Without a policy nothing is set aside, but containers that have CPUs or memory of their own may still run."""
    try:
        speaks_of_nobody = state_files.is_empty(path.read_bytes())
    except FileNotFoundError:
        return
    if not speaks_of_nobody:
        why = f'configured policy "{policy}" differs from state checkpoint policy "{other}"'
        raise ManagerError(_refusal(path, why))
    path.unlink()


def _refusal(path: Path, why: str) -> str:
    return f"could not restore state from {path}: {why}; drain this node and delete the file before starting it again"
