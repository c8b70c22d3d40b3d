"""Commands that sign in: what they are told, what they may print, and when they are asked again."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from podfit.client.exec_plugin import API, Credential, ExecPlugin, PluginError, SignIn
from podfit.client.kubeconfig import KubeconfigError, load
from support.clock import EPOCH, FakeClock


def script(directory: Path, body: str) -> str:
    path = directory / "sign-in"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def printed(version: str = f"{API}/v1", **status: Any) -> str:
    return f"echo '{json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})}'"


def plugin(directory: Path, body: str, **more: Any) -> ExecPlugin:
    return replace(ExecPlugin(command=script(directory, body), directory=directory), **more)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"token": "t"}, Credential("t")),
        ({"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"}, Credential("t", ends="2026-01-01T00:00:00Z")),
        ({"clientCertificateData": "C", "clientKeyData": "K"}, Credential("", b"C", b"K")),
    ],
)
def test_what_is_printed_is_the_credential(tmp_path: Path, status: dict[str, str], expected: Credential) -> None:
    assert plugin(tmp_path, printed(**status)).run() == expected


def test_the_command_is_told_who_asks_and_what_it_was_given(tmp_path: Path) -> None:
    body = f'echo "$1 $MINE" > {tmp_path}/said; echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; {printed(token="t")}'
    plugin(tmp_path, body, args=("--me",), env={"MINE": "yes"}, cluster={"server": "https://x"}).run()
    assert (tmp_path / "said").read_text() == "--me yes\n"
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": f"{API}/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("exit 3", "failed with exit code 3"),
        ("echo nothing", "printed no ExecCredential"),
        ("echo 3", "printed no ExecCredential"),
        (printed(), "printed neither a token nor a certificate"),
        (printed(f"{API}/v1beta1", token="t"), "printed neither a token nor a certificate"),
    ],
)
def test_what_is_no_credential(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        plugin(tmp_path, body).run()


def test_a_command_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"(?s)cannot be run: No such file.*\nget it at the shop"):
        ExecPlugin(command="no-such-command-here", hint="get it at the shop", directory=tmp_path).run()


def test_it_is_asked_again_shortly_before_the_end(tmp_path: Path) -> None:
    clock = FakeClock()
    body = f"echo x >> {tmp_path}/runs; " + printed(token="t", expirationTimestamp=EPOCH.isoformat())
    held = SignIn(plugin(tmp_path, body), clock)
    assert [held.token(), held.token()] == ["t", "t"]
    assert (tmp_path / "runs").read_text() == "x\nx\n", "it had ended already"
    lasting = SignIn(plugin(tmp_path, f"echo x >> {tmp_path}/again; {printed(token='t')}"), clock)
    assert [lasting.token(), lasting.token()] == ["t", "t"]
    assert (tmp_path / "again").read_text() == "x\n"
    with pytest.raises(ConnectionError, match="failed with exit code 1"):
        SignIn(plugin(tmp_path, "exit 1"), clock).token()


def config(directory: Path, **entry: Any) -> Path:
    path = directory / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {"exec": {"apiVersion": f"{API}/v1", **entry}}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path


async def test_a_kubeconfig_names_a_command_beside_itself(tmp_path: Path) -> None:
    script(tmp_path, printed(token="t"))
    access = load([config(tmp_path, command="./sign-in", env=[{"name": "A", "value": "b"}], provideClusterInfo=True)])
    assert access.plugin is not None
    assert (access.plugin.env, access.plugin.cluster) == ({"A": "b"}, {"server": "https://127.0.0.1:9"})
    await access.client().close()
    script(tmp_path, "exit 1")
    with pytest.raises(KubeconfigError, match=r"sign-in failed with exit code 1"):
        access.client()


def test_an_entry_without_a_command(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="user 'u': exec: no command is named"):
        load([config(tmp_path)])
