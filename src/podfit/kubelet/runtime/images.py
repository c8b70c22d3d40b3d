"""The images that a node starts with, built from the distribution's static programs.

No registry is needed: the pause image is `catatonit -P` (or busybox waiting), and `busybox:1.36` is the static busybox
with a link for each of its applets. The archives are OCI layouts, byte for byte the same on every build, and kept in
the data directory.
"""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import msgspec

from podfit.net.files import write_atomic
from podfit.net.processes import static_busybox

PAUSE = "localhost/podfit/pause:1"
BUSYBOX = "docker.io/library/busybox:1.36"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_TYPES = "application/vnd.oci.image"


class ImageContents(msgspec.Struct, frozen=True, kw_only=True):
    """`files` maps paths in the image to files here, `links` link names to targets."""

    name: str
    command: tuple[str, ...]
    files: dict[str, Path]
    links: dict[str, str] = msgspec.field(default_factory=dict)
    directories: tuple[str, ...] = ("tmp",)


def pause_recipe() -> ImageContents:
    if catatonit := shutil.which("catatonit"):
        return ImageContents(name=PAUSE, command=("/pause", "-P"), files={"pause": Path(catatonit)})
    command = ("/pause", "sh", "-c", "trap exit TERM INT; while :; do sleep 86400 & wait; done")
    return ImageContents(name=PAUSE, command=command, files={"pause": static_busybox()})


def busybox_recipe() -> ImageContents:
    program = static_busybox()
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in listed if name != "busybox"}
    return ImageContents(
        name=BUSYBOX,
        command=("sh",),
        files={"bin/busybox": program},
        links=links,
        directories=("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr", "var"),
    )


BUILT_IN = {PAUSE: pause_recipe, BUSYBOX: busybox_recipe}


def archive(recipe: ImageContents, directory: Path) -> Path:
    """The recipe's OCI archive in a directory, made when it is not there or what it is made of has changed."""
    stem = recipe.name.rpartition("/")[2].replace(":", "-")
    digest = hashlib.sha256(repr(recipe).encode())
    for path in recipe.files.values():
        digest.update(path.read_bytes())
    target = directory / f"{stem}-{digest.hexdigest()[:12]}.tar"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        write_atomic(target, _oci(recipe))
    return target


def _oci(recipe: ImageContents) -> bytes:
    layer = _layer(recipe)
    layer_digest = _digest(layer)
    config = msgspec.json.encode(
        {
            "architecture": _ARCHITECTURES.get(os.uname().machine, os.uname().machine),
            "os": "linux",
            "config": {"Cmd": list(recipe.command), "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]},
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        }
    )
    manifest = msgspec.json.encode(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPES}.manifest.v1+json",
            "config": _descriptor(f"{_TYPES}.config.v1+json", config),
            "layers": [_descriptor(f"{_TYPES}.layer.v1.tar", layer)],
        }
    )
    index = msgspec.json.encode(
        {
            "schemaVersion": 2,
            "manifests": [
                _descriptor(f"{_TYPES}.manifest.v1+json", manifest)
                | {"annotations": {"io.containerd.image.name": recipe.name}}
            ],
        }
    )

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", index)
        for blob in (config, layer, manifest):
            _add(tar, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob)
    return out.getvalue()


def _layer(recipe: ImageContents) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in recipe.directories:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name, path in recipe.files.items():
            _add(tar, name, path.read_bytes(), mode=0o755)
        for name, target in recipe.links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return out.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(data), "size": len(data)}
