"""Plans and resizes of somebody with a Role in one namespace, as a developer has it: no nodes, no pods elsewhere."""

from typing import Any

import pytest
from msgspec.structs import replace

from actions.shop import NAMESPACE, Shop, cpu, promise
from podfit.actions.resize_pods import Options, carry_out
from podfit.answers.facts.rights import missing_right
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import NODE, POD, Target
from podfit.answers.plan.result import DEFERRED, NOT_KNOWN, REFUSED
from podfit.answers.why.pods import why_pod
from podfit.api.core.v1.nodes.types import Node
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from support.access import JANE, grant, rule

DEVELOPER = (
    rule("get list watch patch update create delete", "pods pods/resize limitranges resourcequotas"),
    rule("get list patch", "deployments", "apps"),
)
BUDGETS = rule("get list", "poddisruptionbudgets", "policy")


async def developer(shop: Shop, *more: dict[str, Any]) -> Client:
    await grant(shop.server, *DEVELOPER, *more)
    return shop.server.as_identity(JANE)


async def test_what_may_not_be_read_is_not_known_and_the_api_is_not_said_to_refuse(shop: Shop) -> None:
    await shop.add("a", "100m")
    jane = await developer(shop, BUDGETS)
    snapshot = await Reader(jane, NAMESPACE, shop.node.clock).read(Target(POD, "a"), usage=True)
    promised = promise(snapshot, cpu("700m"))
    (planned,) = promised.plan.pods
    assert (planned.verdict, planned.code, planned.good, promised.plan.advisable) == (NOT_KNOWN, 0, False, True)
    assert planned.text == "what node n1 has room for is not known: you may not get nodes"
    assert [(change.before, change.after) for change in planned.changes] == [("100m", "700m")]
    rights = [note for note in promised.plan.notes if note.startswith("not read: ")]
    assert "not read: node n1: you may not get nodes" in rights
    assert "not read: the other pods of node n1: you may not list pods" in rights
    deeds = [outcome async for outcome in carry_out(jane, promised, Options(), shop.node.clock)]
    assert [deed.state for deed in deeds] != ["refused"]
    await shop.node.advance(2)
    assert str((await shop.pod("a")).status.container_statuses[0].allocated_resources["cpu"]) == "700m"


async def test_what_the_api_does_refuse_is_told_without_the_node(shop: Shop) -> None:
    await shop.add("a", "100m", memory="64Mi:64Mi")
    jane = await developer(shop, BUDGETS)
    snapshot = await Reader(jane, NAMESPACE, shop.node.clock).read(Target(POD, "a"), usage=True)
    (planned,) = promise(snapshot, cpu("100m:50m")).plan.pods
    assert (planned.verdict, planned.code) == ("refused", 422)


async def test_a_node_that_may_be_read_does_not_tell_who_is_on_it(shop: Shop) -> None:
    """Without the others there would be room, and a size beyond the node is refused all the same."""
    await shop.add("big", "3500m")
    await shop.add("a", "100m")
    await grant(shop.server, rule("get", "nodes"), kind="ClusterRole")
    jane = shop.server.as_identity(JANE)
    node = await jane.get(Node, "n1")
    known = await shop.snapshot("a")
    assert promise(known, cpu("1")).plan.pods[0].verdict == DEFERRED
    why = {"n1": "who else is on node n1 is not known: you may not list pods"}
    partly = replace(known, nodes={"n1": node}, neighbours=known.pods, unknown_nodes=why)
    assert promise(partly, cpu("1")).plan.pods[0].verdict == NOT_KNOWN
    (beyond,) = promise(partly, cpu("5")).plan.pods
    assert (beyond.verdict, beyond.code) == (REFUSED, 403)


async def test_a_node_that_is_forbidden_is_not_said_to_be_missing(shop: Shop) -> None:
    jane = await developer(shop)
    with pytest.raises(ApiError, match='nodes "n1" is forbidden') as refused:
        await Reader(jane, NAMESPACE).read(Target(NODE, "n1"))
    assert (refused.value.code, str(missing_right(refused.value))) == (403, "get nodes")
    with pytest.raises(ApiError, match='nodes "n7" not found') as missing:
        await Reader(shop.client, NAMESPACE).read(Target(NODE, "n7"))
    assert missing.value.code == 404


async def test_a_resize_that_waits_is_told_in_the_nodes_words(shop: Shop) -> None:
    await shop.add("big", "3500m")
    await shop.add("a", "100m")
    await shop.resize("a", request=cpu("1"), how=Options())
    await shop.node.advance(2)
    jane = await developer(shop)
    snapshot = await Reader(jane, NAMESPACE, shop.node.clock).read(Target(POD, "a"))
    told = why_pod(snapshot.pods[0], snapshot, shop.node.clock.now())
    assert (told.state, told.short_by, told.queued) == ("deferred", "", 0)
    assert told.message.startswith("Node didn't have enough resource: cpu, requested: 1000, used: 3500")


async def test_without_the_right_to_see_budgets_nothing_is_restarted_that_one_may_protect(shop: Shop) -> None:
    await shop.add("a", "100m", policy="RestartContainer")
    jane = await developer(shop)
    snapshot = await Reader(jane, NAMESPACE, shop.node.clock).read(Target(POD, "a"), usage=True)
    promised = promise(snapshot, cpu("700m"))
    (planned,) = promised.plan.pods
    told = "whether a disruption budget allows a restart is not known: you may not list poddisruptionbudgets.policy"
    assert (planned.verdict, planned.text) == ("protected", f"{told} in namespace default")
    deeds = [outcome async for outcome in carry_out(jane, promised, Options(), shop.node.clock)]
    assert [(deed.state, deed.text) for deed in deeds] == [("protected", planned.text)]
    deeds = [outcome async for outcome in carry_out(jane, promised, Options(disrupt=True), shop.node.clock)]
    assert [deed.ends for deed in deeds] == [False]
