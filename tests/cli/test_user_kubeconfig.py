"""`up --kubeconfig FILE` and `apiserver --write-kubeconfig FILE` where FILE is in use: through the commands, seen with
kubectl.
"""

import asyncio
import shutil
from pathlib import Path

import pytest
import yaml

from podfit.cli import exits
from podfit.client.kubeconfig import load
from podfit.net.system import SystemClock
from podfit.process.access import publish, take_back
from podfit.process.control.apiserver import ApiServerProcess
from podfit.process.data.data_dir import DataDir
from podfit.process.options import ApiServerOptions
from support.up import PODFIT, Answer, run

PROD = """\
apiVersion: v1
kind: Config
# mine
current-context: prod
clusters:
- name: prod
  cluster:
    server: https://prod.example:6443
users:
- name: admin
  user:
    token: precious
contexts:
- name: prod
  context:
    cluster: prod
    user: admin
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(PROD)
    return path


def up(data: Path, file: Path) -> Answer:
    words = ("--detach", "--node", "none", "--port", "0", "--no-vpa", "--no-metrics-server")
    return run(PODFIT, "up", *words, "--data", str(data), "--kubeconfig", str(file), timeout=60)


@pytest.mark.kubectl
def test_up_and_down_leave_what_was_in_the_file(file: Path, tmp_path: Path) -> None:
    def kubectl(*words: str) -> str:
        answer = run(shutil.which("kubectl") or "kubectl", "--kubeconfig", str(file), *words)
        assert answer.code == 0, answer.err
        return answer.out.strip()

    data = tmp_path / "data"
    try:
        answer = up(data, file)
        assert answer.code == 0, answer.err
        assert f'context "podfit" in {file} (the current context, before it prod)' in answer.out
        assert kubectl("config", "get-contexts", "-o", "name").split() == ["podfit", "prod"]
        assert kubectl("config", "current-context") == "podfit"
        assert load([file], context="prod").token == "precious"
        assert "default" in kubectl("get", "namespaces", "-o", "name")
        kubectl("config", "set-context", "prod", "--namespace", "shop")
        other = DataDir(tmp_path / "other")
        assert publish(load([file]), other, file).kubectl == f"kubectl --kubeconfig {file}"
        assert kubectl("config", "get-contexts", "-o", "name").split() == ["podfit", "podfit-2", "prod"]
    finally:
        run(PODFIT, "down", "--data", str(data), timeout=90)
    assert kubectl("config", "get-contexts", "-o", "name").split() == ["podfit-2", "prod"]
    take_back(file, other)
    assert kubectl("config", "get-contexts", "-o", "name").split() == ["prod"]
    assert kubectl("config", "current-context") == "prod"
    assert kubectl("config", "view", "-o", "jsonpath={.contexts[0].context.namespace}") == "shop"


def test_a_damaged_file_is_refused_before_anything_starts(file: Path, tmp_path: Path) -> None:
    file.write_text(PROD + "users: [\n")
    answer = up(tmp_path / "data", file)
    assert answer.code == exits.MACHINE
    assert answer.err.startswith(f"error: the kubeconfig {file} is not understood")
    assert "it is left as it is" in answer.err
    assert file.read_text() == PROD + "users: [\n"
    assert not (tmp_path / "data").exists()


def test_the_api_server_alone_adds_to_the_file(file: Path, tmp_path: Path) -> None:
    async def start_and_stop() -> str:
        options = ApiServerOptions(data=DataDir(tmp_path / "data"), port=0, kubeconfig=file)
        process = await ApiServerProcess.start(options, announce=lambda line: None, clock=SystemClock())
        await process.stop()
        return process.server

    server = asyncio.run(start_and_stop())
    assert load([file]).server == server
    assert load([file], context="prod").token == "precious"
    assert "# mine" in file.read_text()


def test_a_bootstrap_token_is_not_written_over_another_kubeconfig(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run(PODFIT, "token", "create", "--out", str(file), "--kubeconfig", str(file))
    assert answer.code == exits.USAGE
    assert "has contexts already" in answer.err
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(PROD)
