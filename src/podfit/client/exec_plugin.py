"""Exec credential plugins of kubeconfigs (EKS, GKE, AKS, OIDC).

The command prints an ExecCredential: a token, or a certificate with its key, and when it ends. It is run when a
credential is first needed, and again shortly before its end. What it writes to stderr is the user's to see.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from podfit.core.clock import Clock
from podfit.core.times import parse_time

API = "client.authentication.k8s.io"
EARLY = timedelta(seconds=30)


class PluginError(ValueError):
    """The command is not there, has failed, or printed something else."""


class Credential(msgspec.Struct, frozen=True):
    """PEM, or a bearer token. `ends` in RFC 3339; empty = never."""

    token: str = ""
    certificate: bytes | None = None
    key: bytes | None = None
    ends: str = ""


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """`cluster` is what the command is told of the cluster when it asked for that; `directory` the kubeconfig's."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    version: str = f"{API}/v1"
    hint: str = ""
    mode: str = "IfAvailable"
    cluster: Mapping[str, Any] | None = None
    directory: Path = Path()

    @staticmethod
    def read(entry: Mapping[str, Any], cluster: Mapping[str, Any], directory: Path) -> "ExecPlugin":
        """Raises PluginError for an entry that names no command, or a version that there is not any more."""
        version = entry.get("apiVersion") or ""
        if version not in (f"{API}/v1", f"{API}/v1beta1"):
            raise PluginError(f"exec: apiVersion {version!r} is not one of {API}/v1, {API}/v1beta1")
        if not entry.get("command"):
            raise PluginError("exec: no command is named")
        told = {key: value for key, value in cluster.items() if key != "certificate-authority"}
        return ExecPlugin(
            command=entry["command"],
            args=tuple(map(str, entry.get("args") or ())),
            env={variable["name"]: variable["value"] for variable in entry.get("env") or ()},
            version=version,
            hint=entry.get("installHint") or "",
            mode=entry.get("interactiveMode") or "IfAvailable",
            cluster=told if entry.get("provideClusterInfo") else None,
            directory=directory,
        )

    def run(self) -> Credential:
        """Raises PluginError."""
        interactive = self.mode == "Always" or (self.mode == "IfAvailable" and sys.stdin.isatty())
        spec = {"interactive": interactive} | ({"cluster": self.cluster} if self.cluster is not None else {})
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": spec}
        try:
            done = subprocess.run(
                [self._program(), *self.args],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                check=False,
                env={**os.environ, **self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            )
        except OSError as error:
            hint = f"\n{self.hint}" if self.hint else ""
            raise PluginError(f"exec: {self.command} cannot be run: {error.strerror}{hint}") from error
        if done.returncode:
            raise PluginError(f"exec: {self.command} failed with exit code {done.returncode}")
        return self._credential(done.stdout)

    def _program(self) -> str:
        """A path is meant from the kubeconfig on, a name is looked for on the PATH."""
        if os.sep in self.command:
            return str(self.directory / self.command)
        return shutil.which(self.command) or self.command

    def _credential(self, printed: bytes) -> Credential:
        try:
            document = json.loads(printed)
            status, version = document.get("status") or {}, document.get("apiVersion")
        except (ValueError, AttributeError) as error:
            raise PluginError(f"exec: {self.command} printed no ExecCredential: {error}") from error
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if version != self.version or not (status.get("token") or (certificate and key)):
            raise PluginError(f"exec: {self.command} printed neither a token nor a certificate of {self.version}")
        return Credential(
            status.get("token") or "",
            certificate.encode() if certificate else None,
            key.encode() if key else None,
            status.get("expirationTimestamp") or "",
        )


class SignIn:
    """A plugin's credential, kept as long as it holds."""

    def __init__(self, plugin: ExecPlugin, clock: Clock) -> None:
        self._plugin, self._clock = plugin, clock
        self._held: Credential | None = None

    def credential(self) -> Credential:
        held = self._held
        if held is None or (held.ends and parse_time(held.ends) - EARLY <= self._clock.now()):
            held = self._held = self._plugin.run()
        return held

    def token(self) -> str:
        """For a request. Raises ConnectionError when the command does not give one any more."""
        try:
            return self.credential().token
        except PluginError as error:
            raise ConnectionError(str(error)) from error
