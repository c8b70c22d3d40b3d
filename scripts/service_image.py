"""Make an image of a folder into which packages of the distribution were unpacked, for scripts/setup-images.

    .venv/bin/python scripts/service_image.py ROOT ARCHIVE NAME        writes ARCHIVE.new

What a service does without is left out of it (documentation, locales, PostgreSQL's compiler), `sh` is busybox, and the
programs of the service are on the PATH. It runs as nobody unless a pod says otherwise.
"""

import io
import shutil
import sys
import tarfile
from pathlib import Path

import oci

UNUSED = (
    "usr/share/doc",
    "usr/share/doc-base",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/postgresql/*/man",
    "usr/lib/postgresql/*/lib/bitcode",
    "usr/lib/postgresql/*/lib/llvmjit*",
    "usr/share/zoneinfo/right",
    "usr/share/zoneinfo/posix",
)
PROGRAMS = ("usr/lib/postgresql/*/bin", "usr/lib/jvm/java-[0-9][0-9]-*/bin")
NOBODY = 65534
PASSWD = "root:x:0:0:root:/:/bin/sh\nservice:x:999:999:service:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"


def complete(root: Path) -> str:
    """Make it one that a container can run in; answers the PATH."""
    for pattern in UNUSED:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("bin", "etc", "dev", "proc", "sys", "run", "tmp"):
        (root / name).mkdir(exist_ok=True)
    (root / "etc/passwd").write_text(PASSWD)
    if not (root / "bin/sh").exists():
        (root / "bin/sh").symlink_to("busybox" if (root / "bin/busybox").exists() else "/usr/bin/busybox")
    found = [path for pattern in PROGRAMS for path in root.glob(pattern)]
    return ":".join([*(f"/{path.relative_to(root)}" for path in found), "/usr/bin", "/bin"])


def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Of no special time, and open to everybody where that is /tmp."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    if entry.name in ("tmp", "run"):
        entry.mode = 0o1777
    return entry


def main() -> None:
    root, archive, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    path = complete(root)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for entry in sorted(root.iterdir()):
            layer.add(entry, entry.name, filter=owned_by_root)
    config = {"User": str(NOBODY), "Env": [f"PATH={path}", "HOME=/tmp"], "WorkingDir": "/tmp"}
    oci.write(Path(f"{archive}.new"), name, buffer.getvalue(), config, packed=False)


if __name__ == "__main__":
    main()
