"""The CPUs and NUMA nodes of this machine, from /sys."""

from collections.abc import Mapping
from pathlib import Path

from podfit.decide.managers.cpu import CpuLocation, Topology, parse
from podfit.decide.managers.memory import Bank

SYS = Path("/sys/devices/system")


def topology(allowed: frozenset[int], sys: Path = SYS) -> Topology:
    """Those of `allowed`, which is what this process may use. A core is numbered by its lowest thread."""
    nodes = _nodes(sys)
    return {cpu: _place(sys, cpu, nodes) for cpu in sorted(allowed)}


def banks(total: int, reserved: Mapping[int, int], sys: Path = SYS) -> dict[int, Bank]:
    """Memory by NUMA node. Where there is one node, or none is told of, it has all `total` bytes."""
    found = {int(path.name.removeprefix("node")): _node_bytes(path / "meminfo") for path in sys.glob("node/node[0-9]*")}
    sizes = found if len(found) > 1 else {next(iter(found), 0): total}
    return {node: Bank(size, reserved.get(node, 0)) for node, size in sorted(sizes.items())}


def _place(sys: Path, cpu: int, nodes: Mapping[int, int]) -> CpuLocation:
    directory = sys / f"cpu/cpu{cpu}/topology"
    threads = _text(directory / "thread_siblings_list") or str(cpu)
    return CpuLocation(
        core=min(parse(threads)),
        socket=max(0, int(_text(directory / "physical_package_id") or 0)),
        node=nodes.get(cpu, 0),
    )


def _nodes(sys: Path) -> dict[int, int]:
    """NUMA node by CPU."""
    return {
        cpu: int(path.name.removeprefix("node"))
        for path in sys.glob("node/node[0-9]*")
        for cpu in parse(_text(path / "cpulist"))
    }


def _node_bytes(path: Path) -> int:
    for line in _text(path).splitlines():
        if "MemTotal:" in line:
            return int(line.split()[-2]) * 1024
    return 0


def _text(path: Path) -> str:
    """Empty where this machine does not tell."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
