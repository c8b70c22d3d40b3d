"""The largest size that pods can have is one that a plan says fits, and the next one does not."""

import pytest

from answers.conversation import NODE as NODE_PATH
from answers.conversation import Conversation, pod
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import RequestError, parse_amount
from podfit.answers.plan.fit import Fit, fit
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, NOT_KNOWN, REFUSED
from podfit.testing.cluster import Cluster


async def asked(conversation: Conversation, container: str = "") -> Fit:
    return fit(await Reader(conversation.client, "shop").read(Target(POD, "web"), usage=True), container)


async def test_what_is_left_of_the_node_and_who_holds_the_rest() -> None:
    """4 CPUs and 8Gi; web has 500m and 256Mi, big 2 CPUs and 256Mi."""
    conversation = Conversation(36, pod(policy="RestartContainer"), pod("big", cpu="2"))
    answer = await asked(conversation)
    cpu, memory = answer.sizes
    assert (cpu.now, cpu.largest, cpu.restarts, cpu.more) == ("500m", "2", (), "2001m")
    assert (cpu.verdict, cpu.pod, cpu.short_by) == (DEFERRED, "web", "1m cpu")
    assert [holder.partition(" ")[0] for holder in cpu.blocked_by] == ["shop/big"]
    assert (memory.largest, memory.restarts, memory.verdict) == ("7936Mi", ("app",), DEFERRED)
    for size in answer.sizes:
        for amount, good in ((size.largest, True), (size.more, False)):
            snapshot = await Reader(conversation.client, "shop").read(Target(POD, "web"), usage=True)
            request = ResizeRequest({size.resource: parse_amount(f"--{size.resource}", amount)})
            assert plan(snapshot, request).good is good


async def test_a_limit_range_bounds_it() -> None:
    conversation = Conversation(36, pod())
    bound = {"type": "Container", "max": {"cpu": "1500m"}}
    conversation.documents["/api/v1/namespaces/shop/limitranges"] = {
        "items": [{"metadata": {"name": "b", "namespace": "shop", "uid": "b"}, "spec": {"limits": [bound]}}]
    }
    cpu, memory = (await asked(conversation)).sizes
    assert (cpu.largest, cpu.verdict) == ("1500m", REFUSED)
    assert "maximum cpu usage per Container is 1500m" in cpu.text
    assert (memory.largest, memory.verdict) == ("8Gi", REFUSED)


async def test_a_pod_that_waits_has_less_than_it_asks_for() -> None:
    waiting = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "observedGeneration": 1}
    conversation = Conversation(36, pod(cpu="3", allocated="2", conditions=[waiting]), pod("big", cpu="2"))
    answer = await asked(conversation)
    assert (answer.sizes[0].now, answer.sizes[0].largest, answer.sizes[0].verdict) == ("3", "", DEFERRED)
    assert not answer.good


async def test_without_the_right_to_read_nodes_it_is_not_known() -> None:
    conversation = Conversation(36, pod())
    conversation.denied |= {NODE_PATH, "/api/v1/nodes"}
    answer = await asked(conversation)
    assert [size.verdict for size in answer.sizes] == [NOT_KNOWN, NOT_KNOWN]
    assert not answer.good
    assert any("you may not list pods" in note for note in answer.notes)


async def test_a_container_that_is_not_there() -> None:
    with pytest.raises(RequestError, match='no container "db"; it has app'):
        await asked(Conversation(36, pod()), "db")


def test_the_node_grants_the_largest_size_and_defers_the_next(cluster: Cluster) -> None:
    for name, cpu, memory in (("web", "500m", "256Mi"), ("other", "700m", "512Mi")):
        size = {"cpu": cpu, "memory": memory}
        container = {"name": "app", "image": "i", "resources": {"requests": size}}
        cluster.apply(
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"containers": [container]}}
        )
    cluster.wait_for("web", phase="Running")
    cluster.wait_for("other", phase="Running")
    snapshot = cluster.run(Reader(cluster.client, "default").read(Target(POD, "web"), usage=True))
    for largest in fit(snapshot).sizes:
        for amount, pending in ((largest.largest, False), (largest.more, True), (largest.now, False)):
            cluster.resize("web", app={"requests": {largest.resource: amount}})
            cluster.settle()
            conditions = [condition.type for condition in cluster.pod("web").pod.status.conditions]
            assert ("PodResizePending" in conditions) is pending, (largest.resource, amount)
