"""A pod at rest that gets another size: it is resized before it is looked at, and looked at once."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import (
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    ProjectedVolumeSource,
    Volume,
    VolumeProjection,
)
from podfit.api.core.v1.references import ObjectFieldSelector, ResourceFieldSelector
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.life import At
from podfit.decide.lifecycle.machine import step
from support.life_trace import a_pod, resized
from support.life_world import LifeWorld


class World(LifeWorld):
    """`meanwhile` ends while its pod is resized."""

    meanwhile = ""

    def _resize(self, effect: do.Resize) -> on.ResizeEnded:
        if self.meanwhile:
            name, self.meanwhile = self.meanwhile, ""
            self.exit(name, 1)
        return super()._resize(effect)


@pytest.fixture
def world() -> Iterator[World]:
    made = World(a_pod("web job restart=Always"))
    made.settle()
    assert made.running_names() == ["job", "web"]
    made.change(larger(made.pod))
    yield made
    assert made.actuated.containers["web"] == made.pod.spec.containers[0].resources


def larger(pod: Pod) -> Pod:
    return resized(pod, "web", "2", restarting=False)


def kinds(effects: Sequence[object]) -> list[type]:
    return [type(effect) for effect in effects]


def test_it_is_resized_first_and_once(world: World) -> None:
    done = kinds(world.turn())
    assert done == [do.Resize, do.Look, do.Gather, do.WriteStatus, do.Reconcile, do.Rest, do.WakeUp]
    known = world.at_rest()
    assert known is not None
    assert not known.conditions


@pytest.mark.parametrize(
    ("item", "mounted"),
    [
        ({"resource_field_ref": ResourceFieldSelector(resource="limits.cpu")}, [do.Mount]),
        ({"field_ref": ObjectFieldSelector(field_path="metadata.namespace")}, []),
    ],
)
@pytest.mark.parametrize("projected", [False, True])
def test_volumes_that_tell_of_sizes_are_brought_up_to_date(
    item: dict[str, Any], mounted: list[type], *, projected: bool
) -> None:
    items = (DownwardAPIVolumeFile(path="size", **item),)
    source: dict[str, Any] = {"downward_api": DownwardAPIVolumeSource(items=items)}
    if projected:
        one = VolumeProjection(downward_api=DownwardAPIProjection(items=items))
        source = {"projected": ProjectedVolumeSource(sources=(one,))}
    pod = a_pod("web job restart=Always")
    world = World(replace(pod, spec=replace(pod.spec, volumes=(Volume(name="of-it", **source),))))
    world.settle()
    world.change(larger(world.pod))
    assert kinds(world.turn())[5:] == [do.Rest, *mounted, do.WakeUp]


def test_what_ended_meanwhile_is_started_again_in_the_same_turn(world: World) -> None:
    world.meanwhile = "job"
    assert do.StartContainer in kinds(world.turn())
    assert world.running_names() == ["job", "web"]


def test_a_cgroup_that_is_gone_is_made_again(world: World) -> None:
    world.cgroup = False
    assert do.EnsureCgroup in kinds(world.turn())
    assert world.cgroup
    world.settle()
    assert world.running_names() == ["job", "web"]


def test_one_that_fails_is_not_tried_again_in_the_same_turn(world: World) -> None:
    world.fails["resize"] = "no"
    assert kinds(world.turn()).count(do.Resize) == 1
    assert world.wakes == do.WakeUp(about=10.0)
    world.fails.clear()
    world.settle()


def test_what_is_not_mounted_or_waits_is_looked_at_first(world: World) -> None:
    world.exit("job", 1)
    assert world.at_rest() is None
    assert kinds(world.turn())[0] is do.Look


def test_one_that_lasts_is_told_of_while_it_lasts(world: World) -> None:
    lasts = on.ResizeLasts(world._inputs(world._facts()))
    assert not world.hear(lasts), "no resize is under way"
    world.life, effects = step(world.life, on.TurnBegan(world.status, world.at_rest()), at=world._moment())
    assert (kinds(effects), world.life.turn.at) == ([do.Resize], At.RESIZING)
    assert kinds(world.hear(lasts)) == [do.WriteStatus]
    world.life, _ = step(world.life, on.ResizeEnded(changed=True), at=world._moment())
    assert not world.hear(lasts), "it is over"
    world.settle()
