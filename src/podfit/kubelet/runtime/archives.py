"""Loading image archives into the private containerd.

CRI has no call for it, so containerd's own `ctr` does it, which comes with containerd and takes docker-save and OCI
archives. Names are read from the archive here: `ctr` keeps an OCI archive's `busybox:1` as it is, which CRI then does
not find, calls a bare tag `import-<date>:latest`, and says nothing about an image without a name. So every name is
completed as Docker does it (`busybox:1` is `docker.io/library/busybox:1`) and handed over in a copy of the archive.

The copy holds regular files, directories and links by plain names, once each, and is bounded: an archive may be a few
kilobytes that unpack to any size.
"""

import asyncio
import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeAlias, cast

import msgspec

from podfit.decide.pod.image_names import split
from podfit.kubelet.runtime.errors import CRIError

NAMESPACE = "k8s.io"  # where the CRI plugin looks
FULL_NAME = "io.containerd.image.name"
SHORT_NAME = "org.opencontainers.image.ref.name"  # a tag by the OCI specification, a whole name from podman
MOST_MEMBERS = 20_000
MOST_BYTES = 64 << 30
MOST_READ = 4 << 20  # of a description, and of a header
Unpacking: TypeAlias = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile
_COMPRESSIONS: Mapping[bytes, Callable[[IO[bytes]], Unpacking]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, msgspec.MsgspecError, KeyError)
OCI_INDEX, DOCKER_MANIFEST = "index.json", "manifest.json"


class Importer(msgspec.Struct, frozen=True):
    """`ctr` is the program, `socket` that of containerd."""

    ctr: str
    socket: Path

    async def load(self, archive: Path) -> tuple[str, ...]:
        """The names of the images that the archive held. CRIError when it cannot be read or names none."""
        with tempfile.TemporaryFile() as copy:
            try:
                room = min(MOST_BYTES, shutil.disk_usage(tempfile.gettempdir()).free * 9 // 10)
                names = await asyncio.to_thread(complete, archive, copy, room=room)
            except _UNREADABLE as error:
                raise CRIError(f"cannot load {archive}: it is no image archive: {error}") from error
            if not names:
                raise CRIError(f"cannot load {archive}: it names no image; save it by name, not by id")
            process = await asyncio.create_subprocess_exec(
                self.ctr,
                "--address",
                str(self.socket),
                "--namespace",
                NAMESPACE,
                "images",
                "import",
                "-",
                stdin=copy,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            _, err = await process.communicate()
        if process.returncode:
            raise CRIError(f"cannot load {archive}: {err.decode(errors='replace').strip()}")
        return names


def complete(archive: Path, copy: IO[bytes], *, room: int = MOST_BYTES) -> tuple[str, ...]:
    """Write the archive to `copy` with complete names, and rewind it; answers these names, or none if it has none.
    `room` is how many bytes the copy may take.

    Raises OSError, EOFError, TarError, MsgspecError, KeyError.
    """
    with unpacked(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as source:
        members = _members(source, room=room)
        if description := members.get(OCI_INDEX):
            names, data = _complete_oci(_content(source, description), archive.stem.lower())
        else:
            description = members[DOCKER_MANIFEST]
            names, data = _complete_docker(_content(source, description))
        with tarfile.open(fileobj=copy, mode="w") as target:
            for member in members.values():
                if member is description:
                    member.size = len(data)
                    target.addfile(member, io.BytesIO(data))
                else:
                    target.addfile(member, source.extractfile(member) if member.isfile() else None)
    copy.seek(0)
    return tuple(dict.fromkeys(names))


@contextmanager
def unpacked(archive: Path) -> Iterator[IO[bytes]]:
    """The tar in an archive, which may be compressed, to be read in pieces of at most MOST_READ bytes: tarfile takes a
    header of any length into memory."""
    with archive.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        opener = next((opener for magic, opener in _COMPRESSIONS.items() if start.startswith(magic)), None)
        if opener is None:
            yield cast(IO[bytes], _Pieces(file))
            return
        with opener(file) as stream:
            yield cast(IO[bytes], _Pieces(stream))


class _Pieces(io.RawIOBase):
    def __init__(self, inner: IO[bytes] | Unpacking) -> None:
        self._inner = inner

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MOST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._inner.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset > MOST_BYTES + MOST_READ:
            raise tarfile.ReadError(f"it unpacks to more than {MOST_BYTES} bytes")
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def _members(source: tarfile.TarFile, *, room: int) -> dict[str, tarfile.TarInfo]:
    """The members by name; of two with one name the last. Raises TarError for what an image does not have."""
    members: dict[str, tarfile.TarInfo] = {}
    size = 0
    for number, member in enumerate(source):
        size += member.size + tarfile.BLOCKSIZE
        if number >= MOST_MEMBERS:
            raise tarfile.ReadError(f"it has more than {MOST_MEMBERS} members")
        if size > room:
            raise tarfile.ReadError(f"it unpacks to more than {room} bytes")
        _check(member)
        members[str(PurePosixPath(member.name))] = member
    return members


def _check(member: tarfile.TarInfo) -> None:
    if not (member.isreg() or member.isdir() or member.issym()) or member.issparse():
        raise tarfile.ReadError(f"{member.name!r} is neither a file nor a directory")
    name = PurePosixPath(member.name)
    link = PurePosixPath(member.linkname) if member.issym() else PurePosixPath()
    if name.is_absolute() or link.is_absolute() or ".." in name.parts or _leads_out(name.parent / link):
        raise tarfile.ReadError(f"{member.name!r} leads out of the archive")


def _leads_out(path: PurePosixPath) -> bool:
    depth = 0
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _complete_oci(data: bytes, stem: str) -> tuple[list[str], bytes]:
    index = msgspec.json.decode(data, type=dict[str, Any])
    index["manifests"] = manifests = msgspec.convert(index["manifests"], list[dict[str, Any]])
    names = []
    for manifest in manifests:
        annotations = msgspec.convert(manifest.get("annotations") or {}, dict[str, str])
        if given := annotations.get(FULL_NAME) or annotations.get(SHORT_NAME):
            bare_tag = not set(given) & set("/:@")
            names.append(full_name(f"localhost/{stem}:{given}" if bare_tag else given))
            manifest["annotations"] = annotations | {FULL_NAME: names[-1]}
    return names, msgspec.json.encode(index)


def _complete_docker(data: bytes) -> tuple[list[str], bytes]:
    manifests = msgspec.json.decode(data, type=list[dict[str, Any]])
    names = []
    for manifest in manifests:
        tags = msgspec.convert(manifest.get("RepoTags") or [], list[str])
        manifest["RepoTags"] = [full_name(tag) for tag in tags]
        names += manifest["RepoTags"]
    return names, msgspec.json.encode(manifests)


def full_name(image: str) -> str:
    """The name as containerd keeps it: with registry, `library` and tag."""
    repository, tag, digest = split(image)
    registry, slash, _ = repository.partition("/")
    if not slash:
        repository = f"docker.io/library/{repository}"
    elif registry != "localhost" and not set(registry) & set(".:"):
        repository = f"docker.io/{repository}"
    return repository + (f":{tag}" if tag else "" if digest else ":latest") + (f"@{digest}" if digest else "")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > MOST_READ:
        raise tarfile.ReadError(f"{member.name} has {member.size} bytes")
    file = tar.extractfile(member)
    if file is None:
        raise KeyError(f"{member.name} is not a file")
    return file.read()
