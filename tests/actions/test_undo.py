"""Going back: what waits is withdrawn first, what cannot be removed stays, what was given is given back."""

import pytest

from actions.shop import NAMESPACE, Shop, cpu, promise
from podfit.actions.resize_pods import Options
from podfit.answers.plan.amounts import Amount, RequestError
from podfit.answers.plan.resize_request import ResizeRequest, apply, from_template
from podfit.answers.plan.result import FITS, REFUSED
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.decide.node.room.annotation import GAVE, noted
from podfit.decide.node.room.shrinkable import Shrink

UNDO = ResizeRequest(undo=True)
WAIT = Options(wait=True, timeout=20)


def memory(request: str, limit: str) -> ResizeRequest:
    return ResizeRequest({"memory": Amount(Quantity.parse(request), Quantity.parse(limit))})


def restarts(pod: Pod) -> int:
    return pod.status.container_statuses[0].restart_count


async def test_what_waits_is_withdrawn_before_others_give_room(shop: Shop) -> None:
    """Two of three were granted; going back frees the room that the third waits for, which nobody wants any more."""
    for name in ("a", "b", "c"):
        await shop.add(name, "400m", policy="RestartContainer")
    await shop.resize("a", "b", "c", request=cpu("1800m"), how=Options())
    await shop.node.advance(30)
    assert [restarts(await shop.pod(name)) for name in "abc"] == [1, 1, 0]
    promised = promise(await shop.snapshot("a", "b", "c"), UNDO).plan
    told = {pod.pod: (pod.verdict, bool(pod.restarts), pod.replaces) for pod in promised.pods}
    assert told == {"a": (FITS, True, False), "b": (FITS, True, False), "c": (FITS, False, True)}
    assert promised.sending[0].pod == "c"
    deeds = await shop.resize("a", "b", "c", request=UNDO, how=WAIT, moves=60)
    assert {deed.state for deed in deeds} == {"done"}
    assert [restarts(await shop.pod(name)) for name in "abc"] == [2, 2, 0], "as the plan says"
    for name in "abc":
        assert str((await shop.pod(name)).status.container_statuses[0].allocated_resources["cpu"]) == "400m"


async def test_what_waits_for_a_size_that_is_not_wanted_any_more_is_told_before_others_give_room(shop: Shop) -> None:
    """It is to have less than it waits for and more than it has: the larger size is never granted on the way."""
    await shop.add("a", "2")
    await shop.add("b", "1", policy="RestartContainer")
    await shop.resize("b", request=cpu("3"), how=Options())
    await shop.node.advance(2)
    deeds = await shop.resize("a", "b", request=cpu("1500m"), how=WAIT, moves=60)
    assert sorted((deed.pod, deed.state) for deed in deeds) == [("a", "done"), ("b", "done")]
    assert restarts(await shop.pod("b")) == 1


async def test_cpu_goes_back_where_memory_cannot(shop: Shop) -> None:
    await shop.add("a", "100m", memory="")
    grown = ResizeRequest({"cpu": Amount(Quantity.parse("500m")), **memory("64Mi", "128Mi").amounts})
    promised = promise(await shop.snapshot("a"), grown).plan
    assert promised.pods[0].verdict == FITS
    new = 'memory request and limit of "app" are new: no resize can remove what was once set, so --undo leaves it'
    assert new in promised.notes
    assert "of the lower memory limit" not in promised.pods[0].shrink
    await shop.resize("a", request=grown, how=WAIT, moves=10)
    back = promise(await shop.snapshot("a"), UNDO).plan
    assert [(pod.verdict, [str(size) for size in pod.sizes]) for pod in back.pods] == [(FITS, ["500m → 100m"])]
    assert 'memory request and limit of "app" stay as they are: a resize removes none' in back.notes
    (deed,) = await shop.resize("a", request=UNDO, how=WAIT, moves=10)
    assert (deed.state, [str(size) for size in deed.sizes]) == ("done", ["500m → 100m"])
    (has,) = (await shop.pod("a")).status.container_statuses
    assert has.resources is not None
    assert (str(has.resources.requests["cpu"]), str(has.resources.limits["memory"])) == ("100m", "128Mi")


async def test_a_request_that_a_limit_which_stays_does_not_allow_stays_too(shop: Shop) -> None:
    await shop.add("a", "100m", memory="200Mi")
    smaller = ResizeRequest({"cpu": Amount(Quantity.parse("300m")), **memory("64Mi", "128Mi").amounts})
    await shop.resize("a", request=smaller, how=WAIT, moves=10)
    (deed,) = await shop.resize("a", request=UNDO, how=WAIT, moves=10)
    assert (deed.state, [str(size) for size in deed.sizes]) == ("done", ["300m → 100m"])


async def test_what_was_given_to_make_room_is_given_back(shop: Shop) -> None:
    await shop.add("batch", "1500m")
    pod = await shop.pod("batch")
    (container,) = pod.spec.containers
    smaller = apply(cpu("1"), pod)
    change = Shrink(pod, {"app": smaller.spec.containers[0].resources}, {"cpu": Quantity.parse("500m")})
    note = {"metadata": {"annotations": {GAVE: noted(change, "default/web")}}}
    await shop.client.patch(Pod, "batch", NAMESPACE, note)
    await shop.client.update(apply(cpu("1"), await shop.pod("batch")), subresource="resize")
    await shop.node.advance(2)
    promised = promise(await shop.snapshot("batch"), UNDO).plan
    assert [str(size) for pod in promised.pods for size in pod.sizes] == ["1 → 1500m"]
    (deed,) = await shop.resize("batch", request=UNDO, how=WAIT, moves=10)
    assert (deed.state, GAVE in (await shop.pod("batch")).metadata.annotations) == ("done", False)
    assert (await shop.pod("batch")).spec.containers[0].resources == container.resources
    with pytest.raises(RequestError, match="was not resized by podfit"):
        promise(await shop.snapshot("batch"), UNDO)


async def test_what_is_told_of_a_manifest_is_what_the_api_made_of_it(shop: Shop) -> None:
    """A LimitRange's default is for what a container does not have; what a manifest leaves out stays as it is."""
    await shop.add("t", "100m", memory="128Mi:256Mi")
    limits = [{"type": "Container", "default": {"memory": "300Mi"}}]
    document = {"metadata": {"name": "l", "namespace": NAMESPACE}, "spec": {"limits": limits}}
    await shop.client.create(convert(document, LimitRange))
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}}}
    asked = from_template(convert({"spec": {"containers": [container]}}, Pod))
    promised = promise(await shop.snapshot("t"), asked).plan
    assert [str(size) for size in promised.pods[0].sizes] == ["128Mi/256Mi → 200Mi/256Mi"]
    (deed,) = await shop.resize("t", request=asked, how=WAIT, moves=10)
    assert [str(size) for size in deed.sizes] == ["128Mi/256Mi → 200Mi/256Mi"]
    (has,) = (await shop.pod("t")).spec.containers
    assert str(has.resources.limits["memory"]) == "256Mi"


async def test_a_default_of_a_limit_range_comes_to_what_has_no_limit_and_is_told(shop: Shop) -> None:
    await shop.add("t", "100m", memory="128Mi")
    limits = [{"type": "Container", "default": {"memory": "300Mi"}}]
    document = {"metadata": {"name": "l", "namespace": NAMESPACE}, "spec": {"limits": limits}}
    await shop.client.create(convert(document, LimitRange))
    promised = promise(await shop.snapshot("t"), cpu("200m")).plan
    (deed,) = await shop.resize("t", request=cpu("200m"), how=WAIT, moves=10)
    assert [str(size) for size in deed.sizes] == [str(size) for size in promised.pods[0].sizes]
    assert str((await shop.pod("t")).spec.containers[0].resources.limits["memory"]) == "300Mi"
    assert any("memory limit" in note and "is new" in note for note in promised.notes)


async def test_a_size_that_the_api_refuses_is_refused_in_the_plan(shop: Shop) -> None:
    """A request above the limit that the manifest leaves out and the pod has."""
    await shop.add("t", "100m", memory="128Mi:256Mi")
    container = {"name": "app", "image": "i", "resources": {"requests": {"memory": "300Mi"}}}
    asked = from_template(convert({"spec": {"containers": [container]}}, Pod))
    (planned,) = promise(await shop.snapshot("t"), asked).plan.pods
    (deed,) = await shop.resize("t", request=asked, how=Options(dry_run=True))
    assert (planned.verdict, deed.state) == (REFUSED, "refused")
