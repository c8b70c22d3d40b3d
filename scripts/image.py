"""Build podfit's image as an OCI archive, from the distribution's Python and the packages of a virtual environment.

    .venv/bin/python scripts/image.py podfit.tar          then: podfit image load podfit.tar

One layer: the interpreter with its library and the shared objects that it and the packages need, the packages that
podfit depends on, and podfit. Nothing else is in it, no shell either. It runs as nobody; the entry point is `podfit`.
The same inputs give the same bytes.
"""

import argparse
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

import oci

ROOT = Path(__file__).parents[1]
PYTHON = Path("/usr/bin/python3.11")
LIBRARY = Path("/usr/lib/python3.11")
PACKAGES = PurePosixPath("/opt/podfit")
NOBODY = 65534
NAME = "docker.io/library/podfit:0.1.0"
UNUSED = ("test", "tests", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "__pycache__", "pydoc_data")
PASSWD = b"root:x:0:0:root:/:/\nnobody:x:65534:65534:nobody:/tmp:/\n"
Files = dict[str, Path | bytes]
"""By path in the image."""


def wanted(name: str, names: dict[str, None]) -> None:
    """A package and what it needs, for this machine; extras are left out."""
    if name in names:
        return
    names[name] = None
    for requirement in distribution(name).requires or ():
        text, _, marker = requirement.partition(";")
        if "extra" in marker or "win32" in marker or "python_version <" in marker.replace('"', ""):
            continue
        needed = re.split(r"[\s\[<>=!~(]", text.strip())[0].lower()
        if _installed(needed):
            wanted(needed, names)


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except ModuleNotFoundError:
        return False
    return True


def packages() -> Iterator[tuple[str, Path]]:
    """The files of everything that podfit needs, and of podfit."""
    names: dict[str, None] = {}
    wanted("podfit", names)
    for name in names:
        for file in () if name == "podfit" else distribution(name).files or ():
            source = Path(str(distribution(name).locate_file(file)))
            if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
                yield str(PACKAGES / file), source
    for source in sorted((ROOT / "src" / "podfit").rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            yield str(PACKAGES / source.relative_to(ROOT / "src")), source


def interpreter() -> Iterator[tuple[str, Path]]:
    yield str(PYTHON), PYTHON
    for source in sorted(LIBRARY.rglob("*")):
        if source.is_file() and not set(source.relative_to(LIBRARY).parts) & set(UNUSED):
            yield str(source), source


def shared(sources: list[Path]) -> Iterator[tuple[str, Path]]:
    """What the dynamic loader would load for these, by the paths where it looks; and the loader."""
    told = subprocess.run(["ldd", *map(str, sources)], capture_output=True, text=True, check=False).stdout
    for path in sorted(set(re.findall(r"(?:=> )?(/\S+) \(0x", told))):
        if not path.startswith(str(ROOT)):
            yield path, Path(path)


def contents() -> Files:
    files: Files = dict([*interpreter(), *packages()])
    objects = [source for path, source in files.items() if ".so" in path and isinstance(source, Path)]
    files |= dict(shared([PYTHON, *objects]))
    return files | {"/etc/passwd": PASSWD}


def layer(files: Files) -> bytes:
    """A tar of these, with a /tmp that everybody may write."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
        for path in sorted(files):
            source = files[path]
            data = source if isinstance(source, bytes) else source.read_bytes()
            runs = isinstance(source, Path) and source.stat().st_mode & 0o111
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(data), 0o755 if runs else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--unpacked", action="store_true", help="quicker to make, three times as large")
    given = parser.parse_args()
    if not PYTHON.exists() or not LIBRARY.is_dir():
        sys.exit(f"{PYTHON} is not there: apt-get install python3.11-minimal libpython3.11-stdlib")
    files = contents()
    config = {
        "User": str(NOBODY),
        "Entrypoint": [str(PYTHON), "-m", "podfit.cli"],
        "Env": [f"PYTHONPATH={PACKAGES}", "PYTHONDONTWRITEBYTECODE=1", "HOME=/tmp", "PATH=/usr/bin"],
        "WorkingDir": "/tmp",
    }
    oci.write(given.archive, NAME, layer(files), config, packed=not given.unpacked)
    print(  # noqa: T201  (what was asked for)
        f"{given.archive}: {NAME}, {given.archive.stat().st_size / 2**20:.0f} MiB, {len(files)} files"
    )


if __name__ == "__main__":
    main()
