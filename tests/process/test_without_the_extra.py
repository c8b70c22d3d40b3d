"""A plain installation, without the extra `node`, on a machine that could run a real node otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.eventually import PATIENCE

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "grpc" or name.startswith("google"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    "words",
    [
        ("kubelet", "--kubeconfig", "{kubeconfig}", "--data", "{data}"),
        ("kubelet", "--kubeconfig", "{kubeconfig}", "--data", "{data}", "--container-runtime-endpoint", "/run/no.sock"),
        ("up", "--node", "real", "--data", "{data}", "--port", "0"),
        ("up", "--node", "real", "--data", "{data}", "--port", "0", "--detach"),
        ("up", "--node", "real", "--data", "{data}", "--port", "0", "--container-runtime-endpoint", "/run/no.sock"),
    ],
)
def test_a_line_says_which_extra_is_missing(words: tuple[str, ...], tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    user = {"name": "n", "user": {"token": "t"}}
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: n\n"
        "clusters: [{name: n, cluster: {server: 'https://127.0.0.1:9'}}]\n"
        f"users: [{user}]\ncontexts: [{{name: n, context: {{cluster: n, user: n}}}}]\n"
    )
    written = ["--write-kubeconfig", str(tmp_path / "written")] if words[0] == "up" else []
    command = [word.format(kubeconfig=kubeconfig, data=tmp_path / "data") for word in words] + written
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WITHOUT)  # for what it starts, too
    done = subprocess.run(
        [sys.executable, "-m", "podfit.cli", *command],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
    )
    told = done.stdout + done.stderr
    assert done.returncode == 3, told
    assert done.stderr.count("error: ") == 1
    assert sum("pip install 'podfit[node]'" in line for line in told.splitlines()) == 1
    assert "Traceback" not in told
