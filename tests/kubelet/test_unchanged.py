"""A pod at which nothing changes is looked at and not worked out anew; whatever changes is seen at the next look."""

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kubelet.harness import Node, container
from podfit.decide.lifecycle import machine
from podfit.decide.lifecycle.facts import ContainerState, StatusInput
from podfit.decide.lifecycle.status import generate

FIRST, LATER = 200, 600  # seconds; a look comes every 60 to 90


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pods whose status was made, one for each time."""
    made: list[str] = []

    def counting(facts: StatusInput, *, freed: bool) -> object:
        made.append(facts.pod.metadata.name)
        return generate(facts, freed=freed)

    monkeypatch.setattr(machine, "generate", counting)
    return made


def turns(node: Node) -> int:
    return int(
        float(
            re.findall(
                r'worker_duration_seconds_count.operation_type="sync". (\S+)',
                node.kubelet.metrics.exposition().decode(),
            )[0]
        )
    )


async def at_rest(node: Node, worked_out: list[str]) -> None:
    node.add(containers=[container("c1"), container("c2")])
    await node.runs()
    await node.advance(FIRST)
    worked_out.clear()


async def test_a_pod_at_rest_is_only_looked_at(node: Node, worked_out: list[str]) -> None:
    await at_rest(node, worked_out)
    before, looks = node.api.status("web"), turns(node)
    await node.advance(LATER)
    assert (worked_out, node.api.status("web")) == ([], before)
    assert turns(node) - looks >= LATER // 91


async def test_what_a_pod_has_just_done_itself_is_no_news_when_the_runtime_lists_it(node: Node) -> None:
    node.add()
    await node.runs()
    before = turns(node)
    await node.advance(20)
    assert turns(node) == before, "the runtime was listed many times since, and showed what the pod's turn saw"
    lose_container(node)
    await node.advance(1)
    assert turns(node) > before


def lose_cgroup(node: Node) -> None:
    node.cgroups.groups.clear()


def lose_container(node: Node) -> None:
    """Without an event of the runtime, so that only a look can find it."""
    running, instances = node.runtime.running("c1"), node.runtime.instances
    instances[running.id] = replace(running, state=ContainerState.EXITED, exit_code=3), *instances[running.id][1:]


@pytest.mark.parametrize("change", [lose_cgroup, lose_container])
async def test_what_changed_unseen_is_mended_at_the_next_look(
    node: Node, worked_out: list[str], change: Callable[[Node], None]
) -> None:
    await at_rest(node, worked_out)
    change(node)
    await node.advance(100)
    assert worked_out
    assert node.state()["restartCount"] == 1
    assert node.state()["state"].get("running")


async def test_a_status_that_somebody_overwrote_comes_back(node: Node, worked_out: list[str]) -> None:
    await at_rest(node, worked_out)
    before = node.api.status("web")
    pod = node.api.get("pods", "web")
    assert pod is not None
    node.api.put("pods", {**pod, "status": {**before, "phase": "Pending"}})
    await node.advance(100)
    assert node.api.status("web") == before
