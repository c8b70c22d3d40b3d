"""The demo's actor: runs the real kubectl where there is one, else podfit's own client."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Protocol

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.programs import ran

OLDEST = (1, 32)  # the first kubectl that knows --subresource resize
NAMESPACE = "default"


class Refused(Exception):
    """The API said no; the text is its own."""


class Actor(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def note(self) -> str:
        """What a measured time contains that is not the cluster's; empty when nothing."""

    async def create(self, manifest: dict[str, Any]) -> None: ...

    async def resize(self, pod: str, patch: dict[str, Any]) -> None:
        """Strategic merge patch of pods/resize. Raises `Refused`."""

    async def delete(self, pod: str) -> None: ...


class Kubectl:
    def __init__(self, program: str, version: str, kubeconfig: Path) -> None:
        self._command = (program, "--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE)
        self._version = version

    @property
    def name(self) -> str:
        return f"kubectl {self._version}"

    @property
    def note(self) -> str:
        return " (the start of kubectl included)"

    async def create(self, manifest: dict[str, Any]) -> None:
        await self._run("apply", "-f", "-", stdin=json.dumps(manifest).encode())

    async def resize(self, pod: str, patch: dict[str, Any]) -> None:
        await self._run("patch", "pod", pod, "--subresource", "resize", "--patch", json.dumps(patch))

    async def delete(self, pod: str) -> None:
        await self._run("delete", "pod", pod, "--now", "--wait=true")

    async def _run(self, *arguments: str, stdin: bytes = b"") -> None:
        code, _, errors = await ran(*self._command, *arguments, given=stdin)
        if code:
            raise Refused(errors.strip())


class OwnClient:
    name = "podfit's own client"
    note = ""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, manifest: dict[str, Any]) -> None:
        await self._client.create_in(Pod, convert(manifest, Pod), NAMESPACE)

    async def resize(self, pod: str, patch: dict[str, Any]) -> None:
        try:
            await self._client.patch(Pod, pod, NAMESPACE, patch, subresource="resize")
        except ApiError as error:
            raise Refused(error.message) from error

    async def delete(self, pod: str) -> None:
        await self._client.delete(Pod, pod, NAMESPACE, grace=1)


async def choose(client: Client, kubeconfig: Path) -> Actor:
    """kubectl when one of 1.32 or later is on the PATH."""
    program = shutil.which("kubectl")
    version = await _version(program) if program else None
    if program and version and _number(version) >= OLDEST:
        return Kubectl(program, version, kubeconfig)
    return OwnClient(client)


async def _version(program: str) -> str | None:
    ended = await ran(program, "version", "--client", "--output", "json")
    try:
        return str(json.loads(ended.said)["clientVersion"]["gitVersion"])
    except (ValueError, KeyError):
        return None


def _number(version: str) -> tuple[int, int]:
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
