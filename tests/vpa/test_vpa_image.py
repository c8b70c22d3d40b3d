"""The image that scripts/image.py builds: an OCI archive in which `podfit vpa` runs, as nobody, without a shell."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from support.eventually import PATIENCE

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/usr/bin/python3.11").exists(), reason="needs root, python3.11"),
]


def test_vpa_runs_in_the_image(tmp_path: Path) -> None:
    """The OCI archive of scripts/image.py, unpacked: it runs as nobody, has no shell, and in it `podfit vpa` starts."""
    archive, root = tmp_path / "podfit.tar", tmp_path / "root"
    subprocess.run([sys.executable, ROOT / "scripts" / "image.py", archive], check=True, timeout=200 * PATIENCE)
    with tarfile.open(archive) as image:

        def blob(digest: str) -> bytes:
            file = image.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert file is not None
            data = file.read()
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest
            return data

        index = image.extractfile("index.json")
        assert index is not None
        manifest = json.loads(blob(json.load(index)["manifests"][0]["digest"]))
        config = json.loads(blob(manifest["config"]["digest"]))["config"]
        layer = tmp_path / "layer.tar"
        layer.write_bytes(gzip.decompress(blob(manifest["layers"][0]["digest"])))
    assert config["User"] == "65534"
    with tarfile.open(layer) as files:
        files.extractall(root, filter="data")
    assert not (root / "bin").exists()
    environment = dict(variable.split("=", 1) for variable in config["Env"])
    command = ["/usr/sbin/chroot", "--userspec=65534", str(root), *config["Entrypoint"]]
    for words, said in ((["--version"], "podfit "), (["vpa", "recommender", "--help"], "--storage")):
        done = subprocess.run(
            [*command, *words], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert said in done.stdout, done.stderr
