"""Loading image archives into the private containerd.

CRI has no call for it, so containerd's own `ctr` does it, which comes with containerd and takes docker-save and OCI
archives. Names are read from the archive here: `ctr` keeps an OCI archive's `busybox:1` as it is, which CRI then does
not find, calls a bare tag `import-<date>:latest`, and says nothing about an image without a name. So every name is
completed as Docker does it (`busybox:1` is `docker.io/library/busybox:1`) and handed over in a copy of the archive.
"""

import asyncio
import io
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec

from podfit.kubelet.images.reference import split
from podfit.kubelet.runtime.errors import CRIError

NAMESPACE = "k8s.io"  # where the CRI plugin looks
FULL_NAME = "io.containerd.image.name"
SHORT_NAME = "org.opencontainers.image.ref.name"  # a tag by the OCI specification, a whole name from podman
OCI_INDEX, DOCKER_MANIFEST = "index.json", "manifest.json"


class Importer(msgspec.Struct, frozen=True):
    """`ctr` is the program, `socket` that of containerd."""

    ctr: str
    socket: Path

    async def load(self, archive: Path) -> tuple[str, ...]:
        """The names of the images that the archive held. CRIError when it cannot be read or names none."""
        with tempfile.TemporaryFile() as copy:
            try:
                names = await asyncio.to_thread(complete, archive, copy)
            except (OSError, EOFError, tarfile.TarError, msgspec.MsgspecError, KeyError) as error:
                raise CRIError(f"cannot load {archive}: it is no image archive: {error}") from error
            if not names:
                raise CRIError(f"cannot load {archive}: it names no image; save it by name, not by id")
            process = await asyncio.create_subprocess_exec(
                self.ctr, "--address", str(self.socket), "--namespace", NAMESPACE, "images", "import", "-",
                stdin=copy, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, err = await process.communicate()
        if process.returncode:
            raise CRIError(f"cannot load {archive}: {err.decode(errors='replace').strip()}")
        return names


def complete(archive: Path, copy: IO[bytes]) -> tuple[str, ...]:
    """Write the archive to `copy` with complete names, and rewind it; answers these names, or none if it has none."""
    with tarfile.open(archive) as source:
        members = {str(PurePosixPath(member.name)): member for member in source.getmembers()}
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
    file = tar.extractfile(member)
    if file is None:
        raise KeyError(f"{member.name} is not a file")
    return file.read()
