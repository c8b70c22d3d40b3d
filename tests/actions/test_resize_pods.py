"""`podfit resize` on a node that decides for itself: done, waiting, refused, protected, undone."""

import json
from pathlib import Path
from typing import Any

import pytest

from actions.shop import NAMESPACE, Shop, cpu, promise
from answers.conversation import PODS, Conversation
from answers.conversation import pod as canned
from kubelet.harness import Node
from podfit.actions.resize_pods import LOOK_SECONDS, Options, carry_out, difference
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import Amount, RequestError
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest, apply
from podfit.answers.plan.result import ERROR, FITS, UNCHANGED
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity


async def test_pods_are_resized_one_after_the_other_and_back_again(shop: Shop) -> None:
    await shop.add("a", "100m")
    await shop.add("b", "300m")
    deeds = await shop.resize("a", "b", request=cpu("500m"), how=Options(wait=True), moves=10)
    assert [(deed.pod, deed.state) for deed in deeds] == [("a", "done"), ("b", "done")]
    await shop.resize("a", request=cpu("700m"), how=Options(wait=True), moves=10)
    noted = json.loads((await shop.pod("a")).metadata.annotations[BEFORE])
    assert noted["containers"]["app"]["requests"]["cpu"] == "100m", "the first size is the one to go back to"
    undone = await shop.resize("a", "b", request=ResizeRequest(undo=True), how=Options(wait=True), moves=10)
    assert [outcome.state for outcome in undone] == ["done", "done"]
    for name, amount in (("a", "100m"), ("b", "300m")):
        pod = await shop.pod(name)
        assert str(pod.status.container_statuses[0].allocated_resources["cpu"]) == amount
        assert BEFORE not in pod.metadata.annotations
    with pytest.raises(RequestError, match="was not resized by podfit"):
        plan(await shop.snapshot("a"), ResizeRequest(undo=True))


async def test_who_waits_is_told_when_time_is_up(shop: Shop) -> None:
    await shop.add("big", "3500m")
    await shop.add("a", "100m")
    deeds = await shop.resize("a", request=cpu("1"), how=Options(wait=True, timeout=30), moves=60)
    assert [(deed.state, deed.good) for deed in deeds] == [("waits", False)]
    assert "Node didn't have enough resource: cpu" in deeds[0].text
    assert 30 <= deeds[0].seconds <= 32


async def test_without_waiting_it_is_read_back_what_became_of_all(shop: Shop) -> None:
    """Of three that ask for 1800m of 4 CPUs two are done and one waits, and that is no success."""
    for name in ("a", "b", "c"):
        await shop.add(name, "400m")
    deeds = await shop.resize("a", "b", "c", request=cpu("1800m"), how=Options(), moves=10)
    assert [(deed.pod, deed.state) for deed in deeds] == [("a", "done"), ("b", "done"), ("c", "waits")]
    assert deeds[2].text.startswith("Node didn't have enough resource: cpu, requested: 1800")
    assert [str(size) for size in deeds[0].sizes] == ["400m → 1800m"]
    assert deeds[2].seconds <= LOOK_SECONDS


async def test_a_node_that_does_nothing_is_not_said_to_have_done_it(shop: Shop) -> None:
    await shop.add("a", "400m")
    snapshot = await shop.snapshot("a")
    await shop.node.kubelet.stop(stop_pods=False)
    (deed,) = await shop.carried_out(promise(snapshot, cpu("1")), Options(), moves=10)
    assert (deed.state, deed.text) == ("waits", "still not seen yet after 2 s")


async def test_a_request_that_waits_already_is_waited_for_and_not_called_unchanged(shop: Shop) -> None:
    await shop.add("big", "3")
    await shop.add("a", "500m")
    await shop.resize("a", request=cpu("1500m"), how=Options())
    await shop.node.advance(2)
    (deed,) = await shop.resize("a", request=cpu("1500m"), how=Options())
    assert (deed.state, deed.good) == ("waits", False)
    assert deed.text.startswith("asked for already: Node didn't have enough resource: cpu, requested: 1500")
    (deed,) = await shop.resize("a", request=cpu("1500m"), how=Options(wait=True, timeout=30), moves=60)
    assert (deed.state, deed.good, 30 <= deed.seconds <= 32) == ("waits", False, True)
    await shop.client.delete(Pod, "big", NAMESPACE)
    (deed,) = await shop.resize("a", request=cpu("1500m"), how=Options(wait=True), moves=60)
    assert deed.state == "done"


async def test_a_limit_below_usage_fails_each_time_that_it_is_asked_for(shop: Shop) -> None:
    await shop.add("a", "100m", memory="64Mi:256Mi")
    shop.use(100 << 20)
    less = ResizeRequest({"memory": Amount(Quantity.parse("64Mi"), Quantity.parse("80Mi"))})
    pod = await shop.pod("a")
    await shop.client.update(apply(less, pod), subresource="resize")
    await shop.node.advance(2)
    promised = plan(await shop.snapshot("a"), less).pods[0]
    assert (promised.verdict, promised.good, promised.repeated) == (ERROR, False, True)
    for _ in range(2):
        (deed,) = await shop.resize("a", request=less, how=Options(wait=True, timeout=30), moves=60)
        assert (deed.state, deed.good) == ("failed", False)
        assert "below current usage (104857600)" in deed.text


async def test_undo_goes_back_to_what_was_granted(shop: Shop) -> None:
    await shop.add("big", "2")
    await shop.add("a", "1")
    pod = await shop.pod("a")
    await shop.client.update(apply(cpu("3"), pod), subresource="resize")
    await shop.node.advance(2)
    await shop.resize("a", request=cpu("500m"), how=Options(wait=True), moves=10)
    promised = plan(await shop.snapshot("a"), ResizeRequest(undo=True)).pods[0]
    assert [(change.before, change.after) for change in promised.changes] == [("500m", "1")]
    (deed,) = await shop.resize("a", request=ResizeRequest(undo=True), how=Options(wait=True), moves=10)
    assert (deed.state, str((await shop.pod("a")).spec.containers[0].resources.requests["cpu"])) == ("done", "1")


async def test_undo_of_a_workload_leaves_a_pod_alone_that_was_not_resized(shop: Shop) -> None:
    await shop.add("a", "100m")
    await shop.add("b", "100m")
    await shop.resize("a", request=cpu("200m"), how=Options(wait=True), moves=10)
    promised = plan(await shop.snapshot("a", "b"), ResizeRequest(undo=True))
    assert [(pod.verdict, pod.text) for pod in promised.pods] == [
        (FITS, ""),
        (UNCHANGED, "podfit did not resize it: there is no size to go back to"),
    ]
    deeds = await shop.resize("a", "b", request=ResizeRequest(undo=True), how=Options(wait=True), moves=10)
    assert [deed.state for deed in deeds] == ["done", "unchanged"]


async def test_a_dry_run_stores_nothing(shop: Shop) -> None:
    await shop.add("a", "100m")
    before = await shop.pod("a")
    deeds = await shop.resize("a", request=cpu("500m"), how=Options(dry_run=True))
    assert [deed.state for deed in deeds] == ["accepted"]
    assert await shop.pod("a") == before


async def test_what_is_refused_ends_it(shop: Shop) -> None:
    await shop.add("a", "100m")
    await shop.add("b", "100m")
    snapshot, request = await shop.snapshot("a", "b"), cpu("500m")
    promised = promise(snapshot, request)
    await shop.client.delete(Pod, "a", NAMESPACE, grace=0)
    deeds = [outcome async for outcome in carry_out(shop.client, promised, Options(), shop.node.clock)]
    assert [(deed.pod, deed.state) for deed in deeds] == [("a", "refused")]
    assert "not found" in deeds[0].text
    assert (await shop.pod("b")).metadata.generation == 1


WEB = {"selector": {"matchLabels": {"app": "web"}}}


@pytest.mark.parametrize(
    ("budget", "allowed", "states"),
    [
        (WEB, 0, ["protected"]),
        (WEB, 1, ["accepted"]),
        ({"selector": {}}, 0, ["protected"]),  # every pod of the namespace
        ({}, 0, ["accepted"]),  # none
    ],
)
async def test_a_restart_stays_within_the_disruption_budget(
    budget: dict[str, Any], allowed: int, states: list[str]
) -> None:
    document = canned(policy="RestartContainer") | {}
    document["metadata"]["labels"] = {"app": "web"}
    conversation = Conversation(36, document)
    conversation.documents["/apis/policy/v1/namespaces/shop/poddisruptionbudgets"] = {
        "items": [
            {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": budget,
                "status": {"disruptionsAllowed": allowed},
            }
        ]
    }
    conversation.documents[f"{PODS}/web/resize"] = document
    snapshot = await Reader(conversation.client, "shop").read(Target(POD, "web"), usage=True)
    request = ResizeRequest({"memory": Amount(Quantity.parse("512Mi"))})
    promised = promise(snapshot, request)
    assert promised.plan.pods[0].restarts
    clock = Node(Path("/nonexistent")).clock
    deeds = [outcome async for outcome in carry_out(conversation.client, promised, Options(dry_run=True), clock)]
    assert [deed.state for deed in deeds] == states


@pytest.mark.parametrize(("minor", "path"), [(31, f"{PODS}/web"), (32, f"{PODS}/web/resize")])
async def test_before_1_32_the_pod_itself_is_patched(minor: int, path: str) -> None:
    conversation = Conversation(minor, canned())
    conversation.documents[f"{PODS}/web/resize"] = canned()
    snapshot = await Reader(conversation.client, "shop").read(Target(POD, "web"))
    clock = Node(Path("/nonexistent")).clock
    request = cpu("700m")
    deeds = [
        outcome
        async for outcome in carry_out(conversation.client, promise(snapshot, request), Options(dry_run=True), clock)
    ]
    assert [deed.state for deed in deeds] == ["accepted"]
    assert conversation.asked[-1] == ("PATCH", path)


def test_only_what_changes_is_sent() -> None:
    two = [{"name": name, "image": "i", "resources": {"requests": {"cpu": "1"}}} for name in ("a", "b")]
    pod = convert({"metadata": {"name": "web"}, "spec": {"containers": two}}, Pod)
    wanted = apply(ResizeRequest({"cpu": Amount(Quantity.parse("2"))}, "b"), pod)
    assert difference(wanted, pod) == {"spec": {"containers": [{"name": "b", "resources": {"requests": {"cpu": "2"}}}]}}
