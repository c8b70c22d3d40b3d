"""What the runtime is asked about a pod."""

from typing import Any

import pytest

from podfit.decide.lifecycle.facts import (
    ContainerState,
    ContainerStatus,
    LinuxResources,
    PodFacts,
    Sandbox,
    SandboxState,
)
from podfit.kubelet.pods.runtime_facts import observe
from podfit.kubelet.runtime.errors import NotFound

BEFORE = PodFacts(
    "u1",
    sandboxes=(
        Sandbox(id="box", uid="u1", name="web", namespace="default", state=SandboxState.READY, attempt=0, created_at=1),
    ),
    containers=(
        ContainerStatus(id="new", name="c1", state=ContainerState.RUNNING, attempt=1, created_at=2),
        ContainerStatus(id="old", name="c1", state=ContainerState.EXITED, attempt=0, created_at=1),
    ),
)


class Asked:
    """A runtime in which the running container has another size, or is in another state, or is gone."""

    def __init__(self, state: ContainerState | None) -> None:
        self.calls: list[str] = []
        self._state = state

    async def container_status(self, container_id: str) -> ContainerStatus:
        self.calls.append(f"status {container_id}")
        if self._state is None:
            raise NotFound(container_id)
        return ContainerStatus(
            id=container_id,
            name="c1",
            attempt=1,
            created_at=2,
            state=self._state,
            resources=LinuxResources(cpu_quota=20_000),
        )

    async def list_sandboxes(self, **_: Any) -> tuple[()]:
        self.calls.append("list sandboxes")
        return ()

    async def list_containers(self, **_: Any) -> tuple[()]:
        self.calls.append("list containers")
        return ()

    async def sandbox_status(self, sandbox_id: str) -> None:
        raise NotFound(sandbox_id)


async def test_after_a_resize_the_running_containers_alone_are_asked_about() -> None:
    runtime: Any = Asked(ContainerState.RUNNING)
    facts = await observe(runtime, "u1", BEFORE, resized=True)
    assert runtime.calls == ["status new"]
    assert facts.sandboxes == BEFORE.sandboxes
    assert [(container.id, container.resources) for container in facts.containers] == [
        ("new", LinuxResources(cpu_quota=20_000)),
        ("old", None),
    ]


@pytest.mark.parametrize("state", [ContainerState.EXITED, None])
async def test_where_one_has_ended_meanwhile_everything_is(state: ContainerState | None) -> None:
    runtime: Any = Asked(state)
    facts = await observe(runtime, "u1", BEFORE, resized=True)
    assert {"list sandboxes", "list containers"} <= set(runtime.calls)
    assert facts == PodFacts("u1")
