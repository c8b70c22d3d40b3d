"""Spare capacity with real containers: what the kernel holds, who has the CPU, who keeps the memory."""

import json
import os
import statistics
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import support.latency
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.spare import kept_free
from podfit.decide.pod.spare import SPARE
from podfit.kubelet.eviction.spare import Lender
from podfit.net.system import SystemClock
from support.eventually import eventually_async
from support.real_node import MI, STAY, RealNode, condition, container, identity, needs, real_node

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node"), pytest.mark.asyncio(loop_scope="module")]

MEMORY = 256 * MI
"""Of the node."""
PROCESSES = 100
"""That all borrowers may have."""
HIGH_SHARES = 65_536
Figure = Callable[[str, object], None]
OWN = needs("500m", "200Mi", limit_memory="240Mi")
SPIN = "for n in $(seq $(nproc)); do while :; do :; done & done"
SPIN_EVERYWHERE = SPIN.replace("$(nproc)", "$(($(nproc) * 4))")
"""So many that each CPU always has one: with one for each, two are on the same CPU for moments, and a borrower has the
other."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node"), lends=MEMORY, processes=4 * PROCESSES) as real:
        yield real


@pytest.fixture
def load(tmp_path: Path) -> Path:
    (tmp_path / "load").mkdir()
    return tmp_path / "load"


def spare(cpu: int, memory: int) -> dict[str, Any]:
    amounts = {"podfit.dev/spare-memory": str(memory)} | ({"podfit.dev/spare-cpu": str(cpu)} if cpu else {})
    return {"requests": amounts, "limits": amounts}


def volumes(load: Path) -> dict[str, Any]:
    return {
        "volumes": [
            {"name": "load", "hostPath": {"path": str(load)}},
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "machine", "hostPath": {"path": "/"}},
        ]
    }


def mounts() -> list[dict[str, str]]:
    return [{"name": name, "mountPath": f"/{name}"} for name in ("load", "memory", "machine")]


async def owner(node: RealNode, load: Path) -> Pod:
    """It spins while /load/spin is there, and has taken so much memory once /load/memory says how much (MiB)."""
    script = (
        "trap 'exit 0' TERM; while :; do "
        "if [ -e /load/memory ]; then dd if=/dev/zero of=/memory/f bs=1M count=$(cat /load/memory); "
        "mv /load/memory /load/taken; fi; "
        f"if [ -e /load/spin ] && [ ! -e /spinning ]; then touch /spinning; {SPIN_EVERYWHERE}; fi; sleep 0.1; done"
    )
    return await node.runs("owner", container("c1", OWN, script=script, volumeMounts=mounts()), **volumes(load))


async def borrower(node: RealNode, load: Path, memory: int = 40, *, busy: str = SPIN) -> Pod:
    """It takes each CPU, and so many MiB."""
    script = f"{busy}; dd if=/dev/zero of=/memory/f bs=1M count={memory}; touch /load/ready; {STAY}"
    made = container("c1", spare(0, 64), script=script, volumeMounts=mounts())
    pod = await node.runs("borrower", made, **volumes(load))
    await there(load / "ready")
    return pod


async def there(file: Path) -> str:
    async def read() -> str | None:
        return text_of(file)

    text = await eventually_async(read, lambda text: text is not None, within=60, what=f"{file} is there", every=0.1)
    assert text is not None
    return text


def text_of(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


async def lent(node: RealNode) -> dict[str, int]:
    """What the node tells after a look of its own. Those of the minute before are forgotten: nobody had requested
    anything, or somebody used it."""
    lender: Lender = node.kubelet._maintenance.lender
    lender.looks = ()
    await lender.estimate()

    async def told() -> dict[str, int]:
        allocatable = (await node.server.client.get(Node, "n1")).status.allocatable
        return {name: amount.value() for name, amount in allocatable.items() if name in SPARE}

    def is_last(found: dict[str, int]) -> bool:
        return bool(found) and found == {name: amount.value() for name, amount in lender.agent.lent.items()}

    found = await eventually_async(told, is_last, within=30, what="it lends", every=0.1)
    return {name.rpartition("-")[2]: amount for name, amount in found.items()}


def cpu_of(node: RealNode, pod: Pod) -> int:
    """Microseconds, by the kernel: the runtime wants CPU to answer, which a busy pod leaves it late."""
    path = node.pod_path(pod)
    if node.cgroups.version == "v1":
        return int(controller_file(node, "cpuacct", path, "cpuacct.usage")) // 1000
    return int(dict(line.split() for line in controller_file(node, "cpu", path, "cpu.stat").splitlines())["usage_usec"])


@contextmanager
def ahead_of_others(node: RealNode) -> Iterator[None]:
    """Pods come before other work of the machine, which is not what this is about: it would leave an owner so little
    that what a borrower has in between counts. In the guest that is this process itself, on the only CPU."""
    paths = (node.cgroups.layout.prefix, node.cgroups.layout.root)
    before = {path: node.cgroups.read_cpu(path).shares for path in paths}
    try:
        for path in paths:
            node.cgroups.set_cpu_shares(path, HIGH_SHARES)
        yield
    finally:
        for path, shares in before.items():
            node.cgroups.set_cpu_shares(path, shares)


def controller_file(node: RealNode, controller: str, path: str, name: str) -> str:
    root = Path("/sys/fs/cgroup") if node.cgroups.version == "v2" else Path("/sys/fs/cgroup", controller)
    return Path(f"{root}{path}/{name}").read_text().strip()


async def test_forks_without_end_take_nothing_of_the_owners(node: RealNode, load: Path) -> None:
    """A borrower that makes processes within its memory gets no more of them than the tier has; the owner has its own,
    and the borrower goes when it is told to."""
    pod = await owner(node, load)
    await lent(node)
    script = f"(while :; do sleep 3600 & done) 2>/dev/null; touch /load/ready; {STAY}"
    bomb = await node.runs("bomb", container("c1", spare(0, 64), script=script, volumeMounts=mounts()), **volumes(load))
    await there(load / "ready")
    tier = node.cgroups.layout.qos("Spare")
    assert controller_file(node, "pids", tier, "pids.max") == str(PROCESSES)
    assert PROCESSES - 5 <= int(controller_file(node, "pids", tier, "pids.current")) <= PROCESSES
    (load / "memory").write_text("1")
    await there(load / "taken")
    for before in (pod, bomb):
        after = await node.pod(before.metadata.name)
        assert after is not None
        assert identity(after, "c1") == identity(before, "c1")
    for name in ("bomb", "owner"):
        await node.delete(name)


@pytest.mark.timeout(240)
async def test_owners_have_cpu_and_memory_back(node: RealNode, load: Path) -> None:
    """A borrower that spins on each CPU has next to nothing of them when the owner wants them; its memory is taken when
    the owner fills its request; the owner is not restarted."""
    pod = await owner(node, load)
    told = await lent(node)
    assert told["cpu"] <= 450, "less where the machine has other work"
    assert 150 <= told["memory"] <= 180
    guest = await borrower(node, load)
    path = node.pod_path(guest)
    assert path == f"{node.cgroups.layout.spare}/pod{guest.metadata.uid}"
    held = node.pod_holds(guest)
    assert (held.memory, held.weight or held.shares) == (64 * MI, 1 if node.cgroups.version == "v2" else 2)
    assert controller_file(node, "cpu", node.cgroups.layout.qos("Spare"), "cpu.idle") == "1"
    said = condition(guest, "podfit.dev/Spare")
    assert said is not None
    assert said.status == "True"
    assert cpu_of(node, guest) > 0

    async def spent() -> tuple[int, int]:
        return cpu_of(node, pod), cpu_of(node, guest)

    first = cpu_of(node, pod)
    with ahead_of_others(node):
        (load / "spin").touch()
        begins = await eventually_async(
            spent, lambda cpu: cpu[0] > first + 10**5, within=60, what="the owner spins", every=0.2
        )
        ends = await eventually_async(
            spent, lambda cpu: cpu[0] > begins[0] + 10**6, within=60, what="it had a second", every=0.2
        )
    owners, guests = (after - before for before, after in zip(begins, ends, strict=True))
    assert guests < owners / 20, (owners, guests)

    (load / "memory").write_text("205")
    ended = await node.until(lambda pod: pod.status.phase == "Failed", "borrower")
    assert ended.status.reason == "Evicted"
    assert "needs the memory that it had lent" in ended.status.message
    await there(load / "taken")
    after = await node.pod("owner")
    assert after is not None
    assert identity(after, "c1") == identity(pod, "c1")
    for name in ("borrower", "owner"):
        await node.delete(name)


# ---------------------------------------------------------------- campaign: five paired runs

PAIRS, SECONDS = 5, 10.0
LATENCY = str(Path(support.latency.__file__).resolve())
Measured = tuple[list[float], float]


async def commanded(node: RealNode, load: Path) -> Pod:
    """An owner that runs what the file /load/run says, on the machine's own files."""
    script = (
        "trap 'exit 0' TERM; while :; do if [ -e /load/run ]; then mv /load/run /load/running; "
        f"chroot /machine /bin/sh {load}/running; fi; sleep 0.05; done"
    )
    return await node.runs("owner", container("c1", OWN, script=script, volumeMounts=mounts()), **volumes(load))


async def measured(node: RealNode, load: Path, what: str, guest: Pod | None) -> Measured:
    """What `support.latency` found, and which part the borrower had of the CPU that the owner left meanwhile."""
    out, clock = load / f"{what}.json", SystemClock()
    out.unlink(missing_ok=True)
    owner = await node.pod("owner")
    assert owner is not None
    before, began, owned = cpu_of(node, guest) if guest else 0, clock.monotonic(), cpu_of(node, owner)
    (load / "new").write_text(f"exec {sys.executable} {LATENCY} {what} {SECONDS} {out}\n")
    (load / "new").rename(load / "run")
    found: list[float] = json.loads(await there(out))
    lent_cpu = cpu_of(node, guest) - before if guest else 0
    all_of_it = 1e6 * len(os.sched_getaffinity(0)) * (clock.monotonic() - began)
    return found, lent_cpu / (all_of_it - (cpu_of(node, owner) - owned))


async def pairs(node: RealNode, load: Path, what: str) -> list[tuple[Measured, Measured]]:
    """Without and with a borrower on each CPU, in turns. It spins, but in the guest (`support.latency.batch`)."""
    batch = f"chroot /machine {sys.executable} {LATENCY} batch 3600 /dev/null &"
    busy = SPIN if node.cgroups.version == "v1" else f"{{ {batch} }}"
    await commanded(node, load)
    await lent(node)
    found = []
    for number in range(PAIRS):
        runs: dict[bool, Measured] = {}
        for borrowed in (True, False) if number % 2 else (False, True):
            (load / "ready").unlink(missing_ok=True)
            guest = await borrower(node, load, 10, busy=busy) if borrowed else None
            with ahead_of_others(node):
                runs[borrowed] = await measured(node, load, what, guest)
            if guest is not None:
                await node.delete("borrower")
        found.append((runs[False], runs[True]))
    await node.delete("owner")
    return found


def p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


@pytest.mark.campaign
@pytest.mark.timeout(600)
async def test_a_server_keeps_its_latency_beside_borrowers(node: RealNode, load: Path, figure: Figure) -> None:
    """Five pairs of 10 s: p99 of a request each 25 ms that takes 2 ms of CPU, without and with a pod on spare capacity
    that spins on each CPU; and which part that pod has of the CPU that the server leaves."""
    found = await pairs(node, load, "server")
    ratio = statistics.median(p99(beside) / p99(alone) for (alone, _), (beside, _) in found)
    part = statistics.median(part for _, (_, part) in found)
    figure("p99 alone, ms", ", ".join(f"{p99(alone):.2f}" for (alone, _), _ in found))
    figure("p99 beside a borrower, ms", ", ".join(f"{p99(beside):.2f}" for _, (beside, _) in found))
    figure("median of the ratios, at most 1.3", f"{ratio:.2f}")
    figure("of the idle CPU the borrower had, at least 60 %", f"{100 * part:.0f} %")
    assert ratio <= 1.3
    assert part >= 0.6


@pytest.mark.campaign
@pytest.mark.timeout(600)
async def test_a_spike_has_its_cpu_back(node: RealNode, load: Path, figure: Figure) -> None:
    """Five pairs: an owner that begins to work has nine tenths of the CPU that it has alone, after how many ms."""
    back = []
    for (alone, _), (beside, _) in await pairs(node, load, "spike"):
        usual = statistics.median(alone)
        back.append(50 * next((n for n, part in enumerate(beside) if part >= 0.9 * usual), len(beside)))
    figure("ms until it has its CPU, at most 500", ", ".join(map(str, back)))
    assert statistics.median(back) <= 500


async def refilled(node: RealNode, load: Path, *, borrowed: bool) -> float:
    """Seconds from an owner's first page to all of its request, with as much free as the node keeps."""
    for name in ("ready", "taken"):
        (load / name).unlink(missing_ok=True)
    pod = await owner(node, load)
    await lent(node)
    guest = await borrower(node, load) if borrowed else None
    clock = SystemClock()
    began = clock.monotonic()
    (load / "new").write_text("205")
    (load / "new").rename(load / "memory")
    await there(load / "taken")

    async def free() -> bool:
        gone = guest is None or not node.cgroups.exists(node.pod_path(guest))
        return gone and node.memory_left().available >= kept_free(MEMORY)

    await eventually_async(free, within=60, what="the node has its memory back", every=0.1)
    seconds = clock.monotonic() - began
    after = await node.pod("owner")
    assert after is not None
    assert identity(after, "c1") == identity(pod, "c1")
    for name in ("borrower", "owner") if borrowed else ("owner",):
        await node.delete(name)
    return seconds


@pytest.mark.campaign
@pytest.mark.timeout(600)
async def test_a_spike_has_its_memory_back(node: RealNode, load: Path, figure: Figure) -> None:
    """Five pairs: an owner fills its request, alone and beside a pod on spare capacity with 40 MiB that the node then
    lacks: after how many seconds it has all of it, that pod is gone, and as much is free as the node keeps."""
    found = []
    for number in range(PAIRS):
        turns = (True, False) if number % 2 else (False, True)
        runs = {borrowed: await refilled(node, load, borrowed=borrowed) for borrowed in turns}
        found.append((runs[False], runs[True]))
    figure("s until it has its memory, alone", ", ".join(f"{alone:.1f}" for alone, _ in found))
    figure("beside a borrower, at most 10", ", ".join(f"{beside:.1f}" for _, beside in found))
    assert statistics.median(beside for _, beside in found) <= 10
