"""What a course of the attack suite is, and what it finds where it attacks."""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.bounded import Answer, Victim
from support.eventually import eventually

DEFAULT = "/api/v1/namespaces/default"
MAPS, PODS = f"{DEFAULT}/configmaps", f"{DEFAULT}/pods"
WAIT_SECONDS = 60.0
MANY_VALUES = range(100, 500)
"""Any answer that is no fault of the server."""


@dataclass
class Scene:
    """One cluster under attack. `scale` is how much of a flood is sent: 1.0 in the campaign, less in `make test`."""

    victim: Victim
    chance: random.Random
    directory: Path
    scale: float = 1.0

    def count(self, most: int) -> int:
        """So many of them, somewhat less by chance, at the scene's scale."""
        return max(1, int(most * self.scale * self.chance.uniform(0.8, 1.0)))

    def name(self) -> str:
        return f"attack-{self.chance.getrandbits(48):x}"

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Any = None,
        expected: Collection[int] = MANY_VALUES,
        content_type: str = "application/json",
    ) -> Answer:
        answer = self.victim.ask(method, path, body, content_type=content_type)
        assert answer.status in expected, f"{method} {path[:200]}: {answer.status} {answer.body[:500]!r}"
        return answer

    def until(self, done: Callable[[], Any], what: str) -> Any:
        """What `done` returns, as soon as it is true."""
        return eventually(done, within=WAIT_SECONDS, what=what)


@dataclass(frozen=True)
class Course:
    name: str
    rows: tuple[str, ...]
    """The lines of docs/bounds.md that it attacks, by how they begin."""
    run: Callable[[Scene], object]
    settle: float = 0.2
    stored_mib: float = 0.0
    """What it has the server keep, at the full scale."""
    long: bool = False
    """It waits for the ends of times that the server gives, so it is the campaign's alone."""


def config_map(name: str, size: int, chance: random.Random, **meta: Any) -> dict[str, Any]:
    """With so many bytes of data, which do not compress."""
    return {"metadata": {"name": name, **meta}, "data": {"a": f"{chance.getrandbits(64):016x}" * (size // 16)}}
