"""An image as an OCI archive: one layer, given as a tar."""

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
KIND = "application/vnd.oci.image"


def write(archive: Path, name: str, layer: bytes, config: Mapping[str, object], *, packed: bool) -> None:
    """`config` is how it runs (User, Entrypoint, Env, …); `packed` makes the archive smaller and takes its time. The
    same inputs give the same bytes.
    """
    blobs: dict[str, bytes] = {}

    def blob(data: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"{KIND}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    described = {
        "architecture": MACHINES[platform.machine()],
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{KIND}.manifest.v1+json",
        "config": blob(json.dumps(described).encode(), "config.v1+json"),
        "layers": [
            blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip") if packed else blob(layer, "layer.v1.tar")
        ],
    }
    head = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    head["annotations"] = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
    }
    files = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [head]}).encode(),
        **blobs,
    }
    with tarfile.open(archive, "w") as target:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            target.addfile(entry, io.BytesIO(data))
