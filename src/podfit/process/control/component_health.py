"""How scheduler and controllers are, for `componentstatuses`: those of this process by their tasks, others by /healthz.

An API server that runs alone looks where upstream's does, at their usual ports on its own machine. Whoever runs them
elsewhere, or at other ports, is told that nobody answers there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from podfit.apiserver.context import Components
from podfit.net.plain_get import GetFailed, get
from podfit.process.listening import url

CONTROLLERS, SCHEDULER = "controller-manager", "scheduler"
PORTS = {CONTROLLERS: 10257, SCHEDULER: 10259}
SECONDS = 5.0
SAID = 1024  # bytes of an answer that are told


def at_ports(ports: dict[str, int]) -> Components:
    """Each is asked for /healthz on loopback; its certificate is its own, so it is not verified."""
    return {name: partial(_problem, url("127.0.0.1", port)) for name, port in ports.items()}


async def _problem(server: str) -> str:
    try:
        answer = await get(f"{server}/healthz", (), timeout=SECONDS, kept=SAID)
    except GetFailed as error:
        return str(error)
    if 200 <= answer.status < 400:
        return ""
    return answer.body.decode(errors="replace").strip() or f"HTTP probe failed with statuscode: {answer.status}"


class OwnComponents:
    """Those that run in this process. Until `runs` has been told of its tasks, a component has not been started."""

    def __init__(self) -> None:
        self._tasks: dict[str, list[asyncio.Task[Any]]] = {}

    def runs(self, name: str, tasks: Iterable[asyncio.Task[Any]]) -> None:
        self._tasks[name] = list(tasks)

    @property
    def asked(self) -> Components:
        return {name: self._asking(name) for name in PORTS}

    def _asking(self, name: str) -> Callable[[], Awaitable[str]]:
        async def problem() -> str:
            if name not in self._tasks:
                return "it has not been started"
            ended = [task.get_name() for task in self._tasks[name] if task.done()]
            return f"it has ended: {', '.join(ended)}" if ended else ""

        return problem
