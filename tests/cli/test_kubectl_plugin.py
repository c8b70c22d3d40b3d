"""`kubectl podfit ...` as its users type it: kubectl finds `kubectl-podfit` on the PATH and hands over what follows."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from podfit.testing.cluster import Cluster
from support.eventually import PATIENCE

pytestmark = pytest.mark.kubectl


def a_pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def kubectl(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": PATH, "KUBECONFIG": str(config), "NO_COLOR": "1", "COLUMNS": "120"}
    return subprocess.run(
        ["kubectl", *words], env=environment, capture_output=True, text=True, check=False, timeout=60 * PATIENCE
    )


def without_age(told: str) -> str:
    """The cluster's time stands still, the command's goes on: an hour may have begun between two of them."""
    assert " for " in told
    return re.sub(r" for \d\w+", " for so long", told)


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path) -> Path:
    """A kubeconfig whose present context leads nowhere; `here` leads to the cluster."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.apply(a_pod("web", "500m"), a_pod("big", "3"), namespace="shop")
    cluster.resize("web", namespace="shop", app={"requests": {"cpu": "2"}})
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    there = document["contexts"][0]["context"]
    document["clusters"].append({"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}})
    document["contexts"] = [
        {"name": "here", "context": there},
        {"name": "nowhere", "context": {**there, "cluster": "nowhere"}},
    ]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump({**document, "current-context": "nowhere"}))
    return path


def test_flags_come_after_the_verb_as_with_kubectls_own(config: Path) -> None:
    there = ("--context", "here", "-n", "shop")
    planned = kubectl(config, "podfit", "plan", "pod/web", "--cpu", "700m", *there)
    assert planned.returncode == 0, planned.stderr
    assert "500m → 700m" in planned.stdout
    why = kubectl(config, "podfit", "why", "pod/web", *there)
    assert (why.returncode, "resize deferred" in why.stdout) == (1, True), why.stderr
    joined = kubectl(config, "podfit", "why", "pod/web", "--context=here", "--namespace=shop")
    assert without_age(joined.stdout) == without_age(why.stdout)
    lost = kubectl(config, "podfit", "why", "pod/web", "-n", "shop")
    assert (lost.returncode, "127.0.0.1:1" in lost.stderr) == (4, True), lost.stderr
    before = kubectl(config, "--context", "here", "podfit", "why", "pod/web")
    assert (before.returncode, "flags cannot be placed before plugin name" in before.stderr) == (1, True)
