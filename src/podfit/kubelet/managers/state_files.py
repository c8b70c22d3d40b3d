"""cpu_manager_state and memory_manager_state: upstream's files, byte for byte, so that a node can change kubelets.

The checksum is FNV-1a over Go's print of the object, types and all; its form was worked out from files with known
checksums.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from podfit.decide.managers.cpu import Assignments, BadCpuSet, CpuState, parse, show
from podfit.decide.managers.memory import Bank, Block, Blocks, MemoryState
from podfit.kubelet.checkpoints.format import Damaged, fnv32a

Document = dict[str, Any]

CPU_POLICY, MEMORY_POLICY = "static", "Static"


class PolicyMismatch(Exception):
    """The file was written under another policy."""


class OtherMachine(Exception):
    """The file is about other CPUs or other memory than this machine has."""


# ---------------------------------------------------------------------- CPUs


def dump_cpus(state: CpuState) -> bytes:
    entries = {
        uid: {name: show(cpus) for name, cpus in sorted(containers.items())}
        for uid, containers in sorted(state.assigned.items())
    }
    document: Document = {"policyName": CPU_POLICY, "defaultCpuSet": show(state.shared)}
    document |= {"entries": entries} if entries else {}
    return _json(document | {"checksum": cpu_checksum(CPU_POLICY, show(state.shared), entries)})


def load_cpus(content: bytes) -> tuple[str, Assignments]:
    """The shared pool as text, and what is assigned. Raises Damaged, OtherPolicy."""
    document = _read(content)
    try:
        policy, shared = document["policyName"], document["defaultCpuSet"]
        entries: dict[str, dict[str, str]] = document.get("entries") or {}
        _verify(document, cpu_checksum(policy, shared, entries))
        assigned = {
            uid: {name: parse(text) for name, text in by_container.items()} for uid, by_container in entries.items()
        }
        parse(shared)
    except (LookupError, TypeError, AttributeError, BadCpuSet) as error:
        raise Damaged(f"no CPU manager state: {error}") from error
    if policy != CPU_POLICY:
        raise PolicyMismatch(policy)
    return shared, assigned


def restored_cpus(content: bytes, fresh: CpuState) -> CpuState:
    """The state in the file, on the machine of `fresh`. Raises Damaged, OtherPolicy, OtherMachine."""
    shared, assigned = load_cpus(content)
    pool = parse(shared)
    everything = pool.union(*(cpus for by_container in assigned.values() for cpus in by_container.values()))
    if everything != frozenset(fresh.topology):
        raise OtherMachine(f"CPUs {show(everything)} instead of {show(fresh.topology)}")
    if not fresh.reserved <= pool:
        raise OtherMachine(f"not all of the reserved CPUs {show(fresh.reserved)} are in the shared pool {shared}")
    return CpuState(topology=fresh.topology, reserved=fresh.reserved, shared=pool, assigned=assigned)


def cpu_checksum(policy: str, shared: str, entries: Mapping[str, Mapping[str, str]]) -> int:
    pods = (
        f"{uid}:{_map(f'{name}:{text}' for name, text in sorted(by_container.items()))}"
        for uid, by_container in sorted(entries.items())
    )
    printed = _struct(
        "(*state.CPUManagerCheckpoint)",
        f"PolicyName:(string){policy}",
        f"DefaultCPUSet:(string){shared}",
        f"Entries:(map[string]map[string]string){_map(pods)}",
        "Checksum:(checksum.Checksum)0",
    )
    return fnv32a(printed.encode())


# ---------------------------------------------------------------------- memory


def dump_memory(state: MemoryState) -> bytes:
    machine = {str(node): _node(state, node) for node in sorted(state.banks)}
    entries = {
        uid: {
            name: [{"numaAffinity": [block.node], "type": "memory", "size": block.size}]
            for name, block in sorted(containers.items())
        }
        for uid, containers in sorted(state.assigned.items())
    }
    document: Document = {"policyName": MEMORY_POLICY, "machineState": machine}
    document |= {"entries": entries} if entries else {}
    return _json(document | {"checksum": memory_checksum(document)})


def _node(state: MemoryState, node: int) -> Document:
    bank = state.banks[node]
    held = [assignment for pod in state.assigned.values() for assignment in pod.values() if assignment.node == node]
    table = {
        "total": bank.total,
        "systemReserved": bank.reserved,
        "allocatable": bank.total - bank.reserved,
        "reserved": state.held(node),
        "free": state.free(node),
    }
    return {"numberOfAssignments": len(held), "memoryMap": {"memory": table}, "cells": [node]}


def restored_memory(content: bytes, banks: Mapping[int, Bank]) -> MemoryState:
    """The state in the file, on this machine. Raises Damaged, OtherPolicy, OtherMachine."""
    document = _read(content)
    try:
        _verify(document, memory_checksum(document))
        policy, machine = document["policyName"], document["machineState"]
        assigned: Blocks = {
            uid: {name: _block(blocks) for name, blocks in by_container.items()}
            for uid, by_container in (document.get("entries") or {}).items()
        }
        found = {int(node): _bank(state["memoryMap"]["memory"]) for node, state in machine.items()}
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise Damaged(f"no memory manager state: {error}") from error
    if policy != MEMORY_POLICY:
        raise PolicyMismatch(policy)
    if found != dict(banks):
        raise OtherMachine(f"{found} instead of {dict(banks)}")
    return MemoryState(banks=banks, assigned=assigned)


def _block(blocks: list[Document]) -> Block:
    (block,) = blocks
    (node,) = block["numaAffinity"]
    return Block(int(node), int(block["size"]))


def _bank(table: Document) -> Bank:
    return Bank(int(table["total"]), int(table["systemReserved"]))


def memory_checksum(document: Document) -> int:
    nodes = (f"{node}:{_printed_node(state)}" for node, state in sorted(document["machineState"].items()))
    entries = document.get("entries") or {}
    pods = (
        f"{uid}:{_map(f'{name}:{_printed_blocks(blocks)}' for name, blocks in sorted(by_container.items()))}"
        for uid, by_container in sorted(entries.items())
    )
    printed = _struct(
        "(*state.MemoryManagerCheckpoint)",
        f"PolicyName:(string){document['policyName']}",
        f"MachineState:(state.NUMANodeMap){_map(nodes)}",
        f"Entries:(state.ContainerMemoryAssignments){_map(pods)}",
        "Checksum:(checksum.Checksum)0",
    )
    return fnv32a(printed.encode())


def _printed_node(node: Document) -> str:
    tables = (f"{name}:{_printed_table(table)}" for name, table in sorted(node["memoryMap"].items()))
    cells = " ".join(map(str, node["cells"]))
    return _struct(
        "<*>",
        f"NumberOfAssignments:(int){node['numberOfAssignments']}",
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable){_map(tables)}",
        f"Cells:([]int)[{cells}]",
    )


def _printed_table(table: Document) -> str:
    names = {
        "TotalMemSize": "total",
        "SystemReserved": "systemReserved",
        "Allocatable": "allocatable",
        "Reserved": "reserved",
        "Free": "free",
    }
    return _struct("<*>", *(f"{go}:(uint64){table[name]}" for go, name in names.items()))


def _printed_blocks(blocks: list[Document]) -> str:
    printed = (
        _struct(
            "",
            f"NUMAAffinity:([]int)[{' '.join(map(str, block['numaAffinity']))}]",
            f"Type:(v1.ResourceName){block['type']}",
            f"Size:(uint64){block['size']}",
        )
        for block in blocks
    )
    return f"[{' '.join(printed)}]"


# ---------------------------------------------------------------------- both


def _struct(kind: str, *fields: str) -> str:
    return f"{kind}{{{' '.join(fields)}}}"


def _map(entries: Iterable[str]) -> str:
    return f"map[{' '.join(entries)}]"


def _json(document: Document) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _read(content: bytes) -> Document:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise Damaged(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise Damaged("not a JSON object")
    return document


def is_empty(content: bytes) -> bool:
    """Whether the file speaks of no pod at all. One that cannot be read may."""
    try:
        return not _read(content).get("entries")
    except Damaged:
        return False


def _verify(document: Document, expected: int) -> None:
    if document.get("checksum") != expected:
        raise Damaged(f"checksum is {expected}, the file says {document.get('checksum')}")
