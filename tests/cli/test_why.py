"""`podfit why` about a VPA and about a node, as a user sees it."""

from pathlib import Path
from typing import Any

import pytest

from answers.conversation import Conversation, pod
from answers.test_top import VPAS
from answers.test_why_node import DEFERRED, unscheduled
from answers.test_why_vpa import cluster, vpa
from cli.test_questions import ask


@pytest.mark.parametrize(
    ("document", "arguments", "code", "told"),
    [
        (
            vpa(),
            [],
            1,
            "vpa web  for Deployment/web, mode Recreate: pods outside the bounds are resized in place by podfit",
        ),
        (vpa(), [], 1, "  app         cpu        700m       700m     600m    1       -"),
        (vpa(), [], 1, "ago (2026-01-01T00:50:00Z)"),
        (vpa("Off"), ["-o", "wide"], 1, "below the bounds   the updater leaves it: mode Off changes no pods that run"),
        (vpa(), ["-o", "json"], 1, '"stands": "below the bounds"'),
        (vpa(), ["-o", "yaml"], 1, "mode: Recreate"),
        (vpa(recommendation=None), [], 1, "note      there is no recommendation"),
    ],
)
async def test_a_vpa(
    document: dict[str, Any],
    arguments: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    conversation = cluster(document)
    assert await ask(tmp_path, conversation, "why", "vpa/web", *arguments) == code
    assert told in capsys.readouterr().out
    assert {method for method, _ in conversation.asked} == {"GET"}


async def test_a_vpa_whose_pods_have_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settled = cluster(vpa(), pod("web-1", cpu="700m"), pod("web-2", cpu="700m"))
    assert await ask(tmp_path, settled, "why", "verticalpodautoscalers/web") == 0
    assert "pods      2, all with the target" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("forbidden", "told"), [((), "the autoscaler's CRDs are not installed"), ((f"{VPAS}/web",), "is forbidden")]
)
async def test_no_vpa(
    forbidden: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(tmp_path, Conversation(36, forbidden=forbidden), "why", "vpa/web") == 4
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "cpu       allocated to shop/big 2, shop/web 500m"),
        ([], "memory    allocated to shop/big 256Mi, shop/web 256Mi"),
        ([], "waits     1. shop/web, resize deferred: Node didn't have enough resource: cpu, requested: 3, used:"),
        ([], "kept out  shop/small: would fit, but the scheduler counts resizes that wait"),
        ([], "kept for  shop/small: the scheduler has nominated this node for them"),
        (["-o", "wide"], "shop/web   Guaranteed   0          500m   3         256Mi    256Mi     its waiting resize"),
        (["-o", "json"], '"shutOut": ['),
    ],
)
async def test_a_node(arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    web = pod("web", cpu="3", allocated="500m", conditions=[DEFERRED])
    conversation = Conversation(36, web, pod("big", cpu="2"), unscheduled("small", "500m", node="n1"))
    assert await ask(tmp_path, conversation, "why", "node/n1", *arguments) == 1
    assert told in capsys.readouterr().out


async def test_a_crowded_node_shows_its_largest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(36, *(pod(f"web-{number}", cpu="100m") for number in range(8)))
    assert await ask(tmp_path, conversation, "why", "node/n1") == 0
    assert "shop/web-4 100m, and 3 more (-o wide)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["why", "pod/web"],
            "  ALLOCATED TO   AMOUNT   PRIORITY   LOWER PRIORITY\n  shop/big       2 cpu    0          no",
        ),
        (["why", "pod/web"], "since     2026-01-01T00:00:00Z"),
        (["why", "-A"], "SHORT BY   GENERATION       QUEUE    ALLOCATED TO     BECAUSE"),
        (["plan", "pod/web", "--cpu", "600m"], "QOS"),
        (["resize", "pod/web", "--cpu", "9"], "QOS"),
    ],
)
async def test_wide_has_what_text_leaves_out(
    command: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = Conversation(36, pod("web", cpu="3", allocated="500m", conditions=[DEFERRED]), pod("big", cpu="2"))
    await ask(tmp_path, conversation, *command)
    text = capsys.readouterr().out
    await ask(tmp_path, conversation, *command, "-o", "wide")
    wide = capsys.readouterr().out
    assert (told in wide, told in text) == (True, False)


def two_nodes(*pods: dict[str, Any]) -> Conversation:
    """n1 with the pods, and n2 with nothing on it."""
    conversation = Conversation(36, *pods)
    conversation.documents["/api/v1/services"] = {"items": []}
    (first,) = conversation.documents["/api/v1/nodes"]["items"]
    conversation.documents["/api/v1/nodes"]["items"] = [first, {**first, "metadata": {"name": "n2"}}]
    return conversation


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 1, "node n1  not removable"),
        ([], 1, "used      its pods ask for 12.5% of its cpu and 3.1% of its memory; the threshold is 50%"),
        ([], 1, "kept by   shop/web, NotReplicated: shop/web is not replicated"),
        (["-o", "json"], 1, '"reason": "NotReplicated"'),
        (["-o", "yaml"], 1, "verdict: not removable"),
    ],
)
async def test_a_node_that_could_not_go(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = two_nodes(pod("web"))
    assert await ask(tmp_path, conversation, "why", "node/n1", "--removable", *arguments) == code
    assert told in capsys.readouterr().out
    assert {method for method, _ in conversation.asked} == {"GET"}


async def test_a_node_that_could_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    web = pod("web")
    web["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    agent = pod("agent", cpu="100m")
    owner = {"apiVersion": "example.com/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    agent["metadata"]["ownerReferences"] = [owner]
    assert await ask(tmp_path, two_nodes(web, agent), "why", "node/n1", "--removable") == 0
    out = capsys.readouterr().out
    assert "node n1  removable" in out
    assert "shop/web   n2" in out
    assert "ends      shop/agent: of daemon sets, they end with the node" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pod/web", "--removable"], '"pod/web" is not one of node/NAME'),
        (["node/n1", "--removable", "-A"], "-A cannot be combined with node/n1"),
        (["--removable"], "is not one of node/NAME"),
    ],
)
async def test_only_of_a_node_it_is_asked_whether_it_could_go(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(tmp_path, Conversation(36), "why", *arguments) == 2
    assert told in capsys.readouterr().err


async def test_who_may_not_read_budgets_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = two_nodes(pod("web"))
    conversation.forbidden = ("/apis/policy/v1/namespaces/shop/poddisruptionbudgets",)
    assert await ask(tmp_path, conversation, "why", "node/n1", "--removable") == 1
    out = capsys.readouterr().out
    assert "node n1  not known" in out
    assert "poddisruptionbudgets" in out
    conversation.forbidden = ("/api/v1/pods",)
    assert await ask(tmp_path, conversation, "why", "node/n1", "--removable") == 4
    assert "cannot list /api/v1/pods" in capsys.readouterr().err
