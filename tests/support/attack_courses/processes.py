"""What attacks a process of its own: image archives, a damaged data directory, a full disk, pods that end the node."""

import io
import os
import random
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from podfit.cli.exits import MACHINE
from podfit.process.data.state import PARTS
from support.attack_courses.course import MAPS, PODS, Scene, config_map
from support.bounded import MEMORY, Figures, Victim, bounded
from support.eventually import PATIENCE
from support.small_disk import small_disk

MIB = 1 << 20
DISK_MIB = 48
LOAD = """
import sys, tempfile
from pathlib import Path
from podfit.kubelet.runtime.archives import complete
with tempfile.TemporaryFile() as copy:
    try:
        complete(Path(sys.argv[1]), copy, room=int(sys.argv[2]))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
"""
UP = ("up", "--node", "none", "--port", "0")


@dataclass(frozen=True)
class Run:
    """What a process came to: its end, what it said, CPU seconds and the most memory it had."""

    code: int
    said: str
    cpu: float
    mib: float


@dataclass(frozen=True)
class Apart:
    name: str
    rows: tuple[str, ...]
    run: Callable[[random.Random, Path, float], list[Figures]]
    """With a seed, a directory and a scale: what was measured, already held against the bounds."""


def measured(directory: Path, *command: str) -> Run:
    """The process may map `MEMORY`, so that a failure stays there."""
    with (directory / "said").open("w+b") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            process_group=0,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),  # noqa: PLW1509  (one thread)
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return Run(process.returncode, text, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def found(name: str, run: Run, before: Run) -> Figures:
    """Beside a process that does nothing; there is no loop, and nobody else asks."""
    figures = Figures(name, 0.0, 0.0, 0.0, max(0.0, run.mib - before.mib), 0.0, 1)
    print(f"{name}: {run.cpu:.1f} s of CPU, grew {figures.peak_mib:.0f} MiB: {run.said.strip()[-200:]}")  # noqa: T201
    return figures.check()


# ------------------------------------------------------------------ image archives


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, target, size
    return entry


def _hostile(chance: random.Random) -> dict[str, list[tarfile.TarInfo]]:
    up = "../" * chance.randint(1, 50)
    deep = "d/" * chance.randint(1, 2000)
    return {
        "traversal": [_member(chance.choice((f"{up}x", "/etc/x", f"a/{up}{up}x")))],
        "link": [_member("l", tarfile.SYMTYPE, chance.choice(("/etc/passwd", f"{up}etc", f"{deep}{up * 2000}x")))],
        "hard link": [_member("h", tarfile.LNKTYPE, "index.json")],
        "device": [_member("d", chance.choice((tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)))],
        "members": [_member(f"m{number}") for number in range(chance.randint(20_001, 40_000))],
        "huge member": [_member("zeros", size=chance.randint(101, 200) * MIB)],
        "huge description": [_member("index.json", size=chance.randint(5, 100) * MIB)],
        "huge header": [_member("x", chance.choice((tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)), size=100 * MIB)],
        "size beyond the file": [_member("x", size=1 << 60)],
    }


def _pack(path: Path, members: list[tarfile.TarInfo]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        index = b'{"manifests":[{"digest":"sha256:1","annotations":{"org.opencontainers.image.ref.name":"a:1"}}]}'
        tar.addfile(_member("index.json", size=len(index)), io.BytesIO(index))
        for member in members:
            assert tar.fileobj is not None
            tar.fileobj.write(
                member.tobuf(
                    tarfile.USTAR_FORMAT if len(member.linkname) < 90 and member.size < 1 << 33 else tarfile.GNU_FORMAT
                )
            )
            for _ in range(min(member.size, 256 * MIB) // MIB):
                tar.fileobj.write(bytes(MIB))


def archives(chance: random.Random, directory: Path, scale: float) -> list[Figures]:
    before = measured(directory, sys.executable, "-c", LOAD.replace("complete(Path", "str(Path"), "x", "1")
    figures = []
    hostile, archive = _hostile(chance), directory / "a.tar.gz"
    for name in chance.sample(sorted(hostile), max(3, int(len(hostile) * scale))):
        _pack(archive, hostile[name])
        run = measured(directory, sys.executable, "-c", LOAD, str(archive), str(100 * MIB))
        figures.append(found(f"archive, {name}", run, before))
        assert run.code == 1, run
        assert run.said.splitlines()[-1].partition(":")[0] in ("TarError", "ReadError"), run.said
    cut = archive.read_bytes()
    for _ in range(max(1, int(6 * scale))):
        spoilt = bytearray(cut[: chance.randrange(1, len(cut))])
        spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
        archive.write_bytes(spoilt)
        run = measured(directory, sys.executable, "-c", LOAD, str(archive), str(100 * MIB))
        figures.append(found("archive, damaged", run, before))
        assert run.code == 1
    return figures


# ------------------------------------------------------------------ the data directory


def damaged(chance: random.Random, directory: Path, scale: float) -> list[Figures]:
    """A part is lost or spoilt at a random place: no start, or one with all that was stored."""
    whole = directory / "whole"
    podfit = (sys.executable, "-m", "podfit.cli")
    with bounded(whole) as victim:
        assert victim.ask("POST", MAPS, {"metadata": {"name": "kept"}}).status == 201
    before = measured(directory, *podfit, "version")
    figures = []
    for number in range(max(2, int(12 * scale))):
        root = directory / f"damaged-{number}"
        shutil.copytree(whole / "data", root)
        part = root / chance.choice(PARTS)
        content = bytearray(part.read_bytes())
        match chance.choice(("missing", "empty", "cut", "noise")):
            case "missing":
                part.unlink()
            case "empty":
                part.write_bytes(b"")
            case "cut":
                part.write_bytes(content[: chance.randrange(len(content) // 2)])
            case "noise":
                part.write_bytes(chance.randbytes(len(content)))
        run = measured(directory, *podfit, *UP, "--data", str(root), "--kubeconfig", str(directory / "config"))
        figures.append(found(f"damaged {part.name}", run, before))
        assert run.code == MACHINE, run
        assert "damaged cluster" in run.said
        assert "Traceback" not in run.said
    return figures


# ------------------------------------------------------------------ a full disk


def full_disk(chance: random.Random, directory: Path, scale: float) -> list[Figures]:
    root = directory / "disk"
    (root / "data").mkdir(parents=True)
    with small_disk(root / "data", DISK_MIB * MIB), bounded(root) as victim:
        scene = Scene(victim, chance, directory, scale)
        figures = [victim.measure("a full disk", lambda: fill(scene), stored_mib=DISK_MIB)]
        figures[0].check(kept_mib=64 + DISK_MIB)
        return figures


def fill(scene: Scene) -> None:
    """By objects of several sizes; then each of them can be deleted, and there is room again."""
    place, made = "/api/v1/namespaces/full", []
    scene.send("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}}, {201})
    sizes = [100, 10_000, 900_000]
    while sizes:  # where a large one has no room, a small one may have
        name, size = scene.name(), scene.chance.choice(sizes)
        answer = scene.send("POST", f"{place}/configmaps", config_map(name, size, scene.chance), {201, 503})
        if answer.status == 201:
            made.append(name)
        else:
            sizes.remove(size)

    def full() -> bool:
        """Not even a small one is stored, and the server says so; a refused write has it look for room first."""
        name = scene.name()
        answer = scene.send("POST", f"{place}/configmaps", config_map(name, 100, scene.chance), {201, 503})
        made.extend([name] if answer.status == 201 else [])
        return scene.victim.ask("GET", "/readyz").status == 500

    scene.until(full, "not ready on a full disk")
    scene.chance.shuffle(made)
    for name in made:
        scene.send("DELETE", f"{place}/configmaps/{name}", None, {200})
    scene.until(lambda: scene.victim.ask("GET", "/readyz").status == 200, "ready again")
    scene.send("POST", f"{place}/configmaps", config_map("again", 1000, scene.chance), {201})


# ------------------------------------------------------------------ a pod that ends the node


def ended(chance: random.Random, directory: Path, scale: float) -> list[Figures]:
    """Killed while it works on a pod, twice; the third start sets the pod aside and runs the others."""
    root, name = directory / "ended", f"bomb-{chance.randint(0, 99)}"
    os.environ["PODFIT_TEST_BOMB"] = name
    try:
        _until_it_ends(root, lambda victim: victim.ask("POST", PODS, {"metadata": {"name": name}, "spec": _pod()}))
        _until_it_ends(root, lambda _: None)
        with bounded(root, node="simulated") as victim:
            scene = Scene(victim, chance, directory, scale)
            figures = [victim.measure("a pod that ends the node", lambda: aside(scene, name))]
            return [figure.check() for figure in figures]
    finally:
        del os.environ["PODFIT_TEST_BOMB"]


def _until_it_ends(root: Path, work: Callable[[Victim], object]) -> None:
    """It may end before it is ready, or while it answers."""
    with suppress(AssertionError, OSError, HTTPException), bounded(root, node="simulated") as victim:
        work(victim)
        victim.process.wait(60 * PATIENCE)


def _pod() -> dict[str, object]:
    return {"containers": [{"name": "c", "image": "x"}]}


def aside(scene: Scene, name: str) -> None:
    scene.send("POST", PODS, {"metadata": {"name": "other"}, "spec": _pod()}, {201})

    def status(pod: str) -> dict[str, str]:
        told: dict[str, str] = scene.send("GET", f"{PODS}/{pod}", None, {200}).json()["status"]
        return told

    scene.until(lambda: status("other").get("phase") == "Running", "the other pod runs")
    scene.until(lambda: status(name).get("reason") == "SetAside", f"{name} is set aside")


APART = (
    Apart("image archives", ("image archive",), archives),
    Apart("a damaged data directory", ("a data directory with a part lost",), damaged),
    Apart("a full disk", ("writes on a full disk",), full_disk),
    Apart("a pod that ends the node", ("pods that end the kubelet",), ended),
)
