"""This version beside another commit, or beside any cluster: the same load on both, in turns.

    python bench/compare.py COMMIT | --kubeconfig FILE [--rounds 10] [--svg docs/compare.svg] [--readme README.md]

COMMIT is checked out aside and runs on the same Python environment; both sides are `podfit up` with a real node of
their own. Of another cluster, FILE's current context is used, in a namespace that is deleted afterwards. One process
asks both sides, a round of one kind at a time, so that whatever else the machine does meets both: the ratio is the
median over the rounds of this version's time to the other's. Times are wall time as a client sees them, over HTTPS.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from measure import data_directory, machine, table

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError

HERE = Path(__file__).resolve().parents[1]
PATIENCE = 60.0
BURST = 10
OBJECTS = 20  # created and read in a round
LISTED = 200


class Pair(NamedTuple):
    """Milliseconds of one round."""

    other: float
    this: float


class Cluster:
    """One side: a namespace with pods that run, and pods that no scheduler takes."""

    def __init__(self, kubeconfig: Path, image: str) -> None:
        self._client: Client = load([kubeconfig]).client()
        self._namespace = f"podfit-compare-{os.getpid()}"
        self._image = image
        self._number = 0

    async def prepare(self) -> None:
        await self._client.create(convert({"metadata": {"name": self._namespace}}, Namespace))
        await self._until_pods_can_be_made()
        for number in range(BURST):
            await self._client.create(self._pod(f"run-{number}", waits=False))
        await asyncio.wait_for(self._all_run(), PATIENCE)
        for number in range(LISTED):
            await self._client.create(self._pod(f"waits-{number}", waits=True))

    async def _until_pods_can_be_made(self) -> None:
        """Another cluster makes the namespace's service account after a moment."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                await self._client.create(self._pod("first", waits=True))
                return
            except ApiError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.1)

    async def _all_run(self) -> None:
        while True:
            pods = (await self._client.list(Pod, self._namespace, fields="status.phase=Running")).items
            if len(pods) == BURST:
                return
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        await self._client.delete(Namespace, self._namespace)
        await self._client.close()

    def _pod(self, name: str, *, waits: bool) -> Pod:
        amounts = {"cpu": "100m", "memory": "32Mi"}
        container = {
            "name": "c",
            "image": self._image,
            "command": ["sleep", "100000"],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": amounts},
        }
        spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "containers": [container]}
        if waits:
            spec["schedulerName"] = "nobody"
        return convert({"metadata": {"name": name, "namespace": self._namespace}, "spec": spec}, Pod)

    # ------------------------------------------------------------------ what is measured

    async def create(self) -> float:
        """A pod that nobody schedules."""
        self._number += 1
        names = [f"made-{self._number}-{number}" for number in range(OBJECTS)]
        return await _median(lambda name: self._client.create(self._pod(name, waits=True)), names)

    async def get(self) -> float:
        return await _median(
            lambda name: self._client.get(Pod, name, self._namespace), [f"waits-{number}" for number in range(OBJECTS)]
        )

    async def listed(self) -> float:
        """All pods that wait, decoded."""
        return await _median(
            lambda _: self._client.list(Pod, self._namespace, fields="status.phase=Pending", limit=LISTED), ["", ""]
        )

    async def grow(self) -> float:
        """From the PATCH to a status without any condition of a resize."""
        return await self._resize(["run-0"], 200)

    async def shrink(self) -> float:
        return await self._resize(["run-0"], 100)

    async def grow_many(self) -> float:
        """The same for ten at once, until the last is complete."""
        taken = await self._resize([f"run-{number}" for number in range(BURST)], 300)
        await self._resize([f"run-{number}" for number in range(BURST)], 100)
        return taken

    async def _resize(self, names: list[str], milli: int) -> float:
        now = await self._client.list(Pod, self._namespace)
        wanted = {pod.metadata.name: pod.metadata.generation + 1 for pod in now.items if pod.metadata.name in names}
        version = now.resource_version
        waiting = asyncio.create_task(self._complete(wanted, version))
        patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": f"{milli}m"}}}]}}
        began = time.perf_counter()
        await asyncio.gather(
            *(self._client.patch(Pod, name, self._namespace, patch, subresource="resize") for name in names)
        )
        await asyncio.wait_for(waiting, PATIENCE)
        return 1000 * (time.perf_counter() - began)

    async def _complete(self, wanted: dict[str, int], version: str) -> None:
        left = dict(wanted)
        async for event in self._client.watch(Pod, self._namespace, resource_version=version):
            pod: Any = event.object
            if any(condition.type.startswith("PodResize") for condition in pod.status.conditions):
                continue
            if pod.status.observed_generation >= left.get(pod.metadata.name, sys.maxsize):
                del left[pod.metadata.name]
            if not left:
                return


KINDS: dict[str, Callable[[Cluster], Awaitable[float]]] = {
    "create a pod": Cluster.create,
    "get a pod": Cluster.get,
    f"list {LISTED} pods": Cluster.listed,
    "grow one pod, complete": Cluster.grow,
    "shrink one pod, complete": Cluster.shrink,
    f"grow {BURST} pods at once, complete": Cluster.grow_many,
}


async def _median(ask: Callable[[str], Awaitable[object]], names: list[str]) -> float:
    taken = []
    for name in names:
        began = time.perf_counter()
        await ask(name)
        taken.append(1000 * (time.perf_counter() - began))
    return median(taken)


async def measure(other: Cluster, this: Cluster, rounds: int) -> dict[str, list[Pair]]:
    """Pairs of each kind; the side that goes first changes with each round."""
    pairs: dict[str, list[Pair]] = {name: [] for name in KINDS}
    for number in range(-1, rounds):
        for name, kind in KINDS.items():
            first, second = (other, this) if number % 2 else (this, other)
            taken = {side: await kind(side) for side in (first, second)}
            if number >= 0:  # the first round warms up
                pairs[name].append(Pair(taken[other], taken[this]))
        print(f"\rround {max(number, 0) + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return pairs


# ---------------------------------------------------------------------- sides


@contextmanager
def cluster(source: Path) -> Iterator[Path]:
    """A cluster of this checkout's code: the path of its kubeconfig."""
    podfit = [sys.executable, "-c", "from podfit.cli.app import main; main()"]
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    with data_directory() as data:
        kubeconfig = data / "compare.kubeconfig"
        words = ("up", "--detach", "--data", str(data), "--port", "0", "--kubeconfig", str(kubeconfig))
        subprocess.run([*podfit, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
        yield kubeconfig


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A worktree of the commit, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="podfit-compare-") as folder:
        path = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(path), commit], check=True, cwd=HERE)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], check=True, cwd=HERE)


# ---------------------------------------------------------------------- what is shown


def summary(pairs: dict[str, list[Pair]]) -> list[tuple[str, float, float, float, float, float]]:
    """Of each kind the medians of both sides, and of the ratio the quartiles."""
    rows = []
    for kind, measured in pairs.items():
        low, middle, high = quantiles([pair.this / pair.other for pair in measured], n=4, method="inclusive")
        rows.append(
            (kind, median(pair.other for pair in measured), median(pair.this for pair in measured), low, middle, high)
        )
    return rows


def drawing(rows: list[tuple[str, float, float, float, float, float]], title: str) -> str:
    """An SVG: a bar of each ratio, its quartiles, and a line at 1."""
    left, width, height = 250, 400, 28
    scale = width / max(1.25, *(row[5] for row in rows))
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height * (len(rows) + 2)}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<text x="8" y="18">{title}</text>',
    ]
    for number, (kind, _, _, low, middle, high) in enumerate(rows, 1):
        top = number * height
        lines += [
            f'<text x="{left - 8}" y="{top + 17}" text-anchor="end">{kind}</text>',
            f'<rect x="{left}" y="{top + 4}" width="{middle * scale:.0f}" height="{height - 10}" fill="#4878a8"/>',
            (
                f'<line x1="{left + low * scale:.0f}" x2="{left + high * scale:.0f}" y1="{top + 13}" y2="{top + 13}" '
                'stroke="#202020" stroke-width="2"/>'
            ),
            f'<text x="{left + high * scale + 8:.0f}" y="{top + 17}">{middle:.2f}</text>',
        ]
    one = left + scale
    lines.append(
        f'<line x1="{one:.0f}" x2="{one:.0f}" y1="{height}" y2="{height * (len(rows) + 1)}" stroke="#a04040" '
        'stroke-dasharray="4"/></svg>'
    )
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- compare: written by bench/compare.py --readme -->", "<!-- end of compare -->"


def with_table(document: str, rows: list[tuple[str, float, float, float, float, float]], name: str, run: str) -> str:
    """The document with this run's table between the two marks; `run` says which run it is. Raises ValueError."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no {BEGIN} and {END}")
    lines = ["", run, "", f"| milliseconds | {name} | this version | ratio |", "|---|---|---|---|"]
    lines += [f"| {kind} | {was:.1f} | {now:.1f} | {ratio:.2f} |" for kind, was, now, _, ratio, _ in rows]
    return "\n".join((before + begin, *lines, "", end + after))


def this_commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


async def run(other: Path, this: Path, options: argparse.Namespace) -> dict[str, list[Pair]]:
    sides = Cluster(other, options.image), Cluster(this, "busybox:1.36")
    try:
        for side in sides:
            await side.prepare()
        return await measure(*sides, options.rounds)
    finally:
        for side in sides:
            await side.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commit", nargs="?", help="the other version")
    parser.add_argument("--kubeconfig", type=Path, help="the other cluster, instead of a commit")
    parser.add_argument("--image", default="busybox:1.36", help="what the other cluster runs; it needs `sleep`")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--svg", type=Path, help="where to draw the ratios")
    parser.add_argument("--readme", type=Path, help="the document whose table is to be of this run")
    options = parser.parse_args()
    if (options.commit is None) == (options.kubeconfig is None):
        parser.error("say a commit or a --kubeconfig, one of the two")
    name = options.commit or str(options.kubeconfig)
    title = f"this version / {name}: {machine()}"
    print(title, flush=True)
    with ExitStack() as stack:
        other = options.kubeconfig or stack.enter_context(cluster(stack.enter_context(checkout(options.commit))))
        this = stack.enter_context(cluster(HERE))
        rows = summary(asyncio.run(run(other, this, options)))
    table(
        [
            ("milliseconds", name, "this version", "ratio", "half of the rounds"),
            *((k, f"{o:.1f}", f"{t:.1f}", f"{m:.2f}", f"{low:.2f} to {high:.2f}") for k, o, t, low, m, high in rows),
        ]
    )
    if options.svg:
        options.svg.write_text(drawing(rows, title))
    if options.readme:
        today = datetime.now(tz=UTC).date()
        words = f'make compare WITH="{name} --rounds {options.rounds}"'
        run_told = f"`{words}` on {today}, this version {this_commit()}: {machine()}."
        options.readme.write_text(with_table(options.readme.read_text(), rows, name, run_told))


if __name__ == "__main__":
    main()
