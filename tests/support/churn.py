"""Writes of every sort while parts are killed, and what has to be true of them afterwards.

    churn = Churn(up, random)
    await churn.around(lambda: parts.kill("kubelet"))     writes before, during and after
    churn.kept()                                          what was acknowledged is there, what was deleted is not

ConfigMaps are created one after the other, pods are created for the scheduler to place, and pods are deleted by force
right before the kill and right after the part has started again.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from support.eventually import eventually, eventually_async
from support.up import Up, manifest, resources, running

LABEL = "churn"
PATIENCE = 90.0  # seconds for one write while the API server is away
NOTES, MOST = 10, 8  # ConfigMaps of one round; pods that are there at once


class Churn:
    def __init__(self, up: Up, chance: random.Random) -> None:
        self._up, self._chance = up, chance
        self.notes: set[str] = set()
        self.pods: dict[str, str] = {}  # UIDs by name
        self.gone: set[str] = set()
        self.set_aside = 0
        self._number = 0

    @property
    def acknowledged(self) -> int:
        return len(self.notes) + len(self.pods) + 2 * len(self.gone)

    def around(self, disturbance: Callable[[], object]) -> None:
        """Write, and call `disturbance` meanwhile."""
        asyncio.run(self._around(disturbance))

    async def _around(self, disturbance: Callable[[], object]) -> None:
        client = load([self._up.kubeconfig]).client()
        try:
            await self._create(client, MOST - len(self.pods))
            await self._delete(client)
            writing = asyncio.create_task(self._write_notes(client))
            await asyncio.to_thread(disturbance)
            await self._delete(client)
            await writing
        finally:
            await client.close()

    def kept(self) -> None:
        """Everything that was acknowledged."""
        notes = set(self._names("configmaps"))
        assert self.notes <= notes, f"acknowledged and not there: {sorted(self.notes - notes)}"
        pods = {name: meta["uid"] for name, meta in self._names("pods").items()}
        assert {name: pods.get(name) for name in self.pods} == self.pods, "a pod that was created is not there"
        assert not self.gone & pods.keys(), "a pod that was deleted is there"

    def settle(self) -> None:
        """Every pod runs, also one whose shim was killed, or the kubelet has set it aside: it was killed twice while it
        worked on that pod, the second time on it alone. Those are deleted by force.
        """
        what = "every pod of the churn runs"
        pods = eventually(self._pods, lambda pods: all(map(_settled, pods)), within=PATIENCE, what=what)
        aside = [pod["metadata"]["name"] for pod in pods if _aside(pod)]
        self.set_aside += len(aside)
        for name in aside:
            self._up.ok("delete", "pod", name, "--force", "--grace-period=0")
            del self.pods[name]
            self.gone.add(name)

    def _pods(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self._up.ok("get", "pods", "-l", LABEL, "-o", "json"))["items"]
        return listed

    def any_pod(self) -> str:
        """The UID of a pod that runs."""
        running: list[str] = [
            meta["uid"] for meta in self._names("pods", "--field-selector=status.phase=Running").values()
        ]
        return self._chance.choice(sorted(running))

    def _names(self, kind: str, *more: str) -> dict[str, Any]:
        listed = json.loads(self._up.ok("get", kind, "-l", LABEL, "-o", "json", *more))["items"]
        return {item["metadata"]["name"]: item["metadata"] for item in listed}

    async def _create(self, client: Client, many: int) -> None:
        for _ in range(many):
            self._number += 1
            name = f"churn-{self._number}"
            document = manifest(name, {"name": "app", "resources": resources("10m", "16Mi")})
            document["metadata"]["labels"] = {LABEL: "pod"}
            document["spec"]["volumes"] = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
            pod = convert(document, Pod)
            made = await self._acknowledged(client.create, pod, "default", then=(client.get, Pod, name, "default"))
            self.pods[name] = made.metadata.uid

    async def _delete(self, client: Client) -> None:
        """One by force."""
        name = self._chance.choice(sorted(self.pods))
        await self._acknowledged(lambda: client.delete(Pod, name, "default", grace=0))
        del self.pods[name]
        self.gone.add(name)

    async def _write_notes(self, client: Client) -> None:
        for _ in range(NOTES):
            self._number += 1
            name = f"note-{self._number}"
            note = convert({"metadata": {"name": name, "labels": {LABEL: "note"}}, "data": {"name": name}}, ConfigMap)
            await self._acknowledged(client.create, note, "default", then=(client.get, ConfigMap, name, "default"))
            self.notes.add(name)

    async def _acknowledged(self, ask: Callable[..., Awaitable[Any]], *given: Any, then: tuple[Any, ...] = ()) -> Any:
        """Ask until there is an answer. What is there already, or gone, was done by a request whose answer was lost."""
        refusals: list[str] = []

        async def answered() -> Any:
            try:
                return await ask(*given) or True
            except ApiError as error:
                if error.code == 409 and then:
                    read, *which = then
                    return await read(*which)
                if error.code == 404 and not then:
                    return True
                refusals.append(str(error))
            except ConnectionError as error:
                refusals.append(str(error))
            return None

        return await eventually_async(answered, within=PATIENCE, what="acknowledged", told=lambda: str(refusals[-3:]))


def _settled(pod: dict[str, Any]) -> bool:
    return running(pod) or _aside(pod)


def _aside(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("reason") == "SetAside")
