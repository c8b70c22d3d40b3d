"""Any part of a cluster is killed in the middle of everything that is written to it.

Each part is a process of its own, or all are in `podfit up`. They are started again by the test, containerd by the
kubelet. Afterwards every pod has the size it was asked for in spec, status and kernel, in the container that it began
with, every acknowledged write is there, and of the pods that were deleted nothing is left.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from e2e.storm import Storm
from support.churn import LABEL, Churn
from support.eventually import eventually
from support.parts import BESIDE, CORE, Parts, kill_shim, remains, separate, together
from support.up import manifest, running
from support.vpa_processes import deployment, vpa

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.row("R-170", "R-171", "R-172", "R-174"),
]
SECONDS = 120.0
SEED, BY_ITSELF = 2411, 20
"""Kills of one cluster, after which the next begins."""
WHOLE_SECONDS = 2400
BUSY = {"requests": {"cpu": "10m", "memory": "16Mi"}}


class Course:
    """One cluster in which parts are killed, one after the other."""

    def __init__(self, made: Parts, seed: int, *, pods: int = 10, resizes: int = 5) -> None:
        self.made, self._chance = made, random.Random(seed)
        made.up.ok("wait", "--for=create", "serviceaccount/default", "--timeout=60s", timeout=90)
        self.storm = Storm(made.up, seed=seed, pods=pods, resizes=resizes, node=made.node, stubborn=True)
        self.churn = Churn(made.up, self._chance)
        self.storm.begin()
        self.churn.around(lambda: None)

    def kill(self, part: str) -> None:
        """In a storm of resizes, with pods deleted by force before and after."""
        if part == "shim":
            self.churn.settle()
        self.storm.disturb(lambda: self.churn.around(partial(self._kill, part)))
        self.storm.check(f"after a kill of {part}", seconds=SECONDS)
        self.made.keep()
        self.churn.kept()

    def _kill(self, part: str) -> None:
        if part == "shim":
            kill_shim(self.made.node, self.churn.any_pod())
        else:
            self.made.kill(part)

    def rest(self) -> None:
        """New pods are placed and run, and nothing is on the machine but what the pods that there are need."""
        self.made.up.apply(manifest("last"))

        def runs(pod: dict[str, Any]) -> bool:
            self.made.keep()
            return running(pod)

        self.made.up.pod_when("last", runs, "ran", seconds=SECONDS)
        self.made.up.ok("delete", "pod", "last", "--now")
        self.churn.settle()
        eventually(self._orphans, lambda orphans: not any(orphans.values()), within=SECONDS, what="nothing is left")

    def _orphans(self) -> dict[str, set[str]]:
        """Of pods that there are no more."""
        pods = json.loads(self.made.up.ok("get", "pods", "-A", "-o", "json"))["items"]
        known = {pod["metadata"]["uid"] for pod in pods}
        return {kind: uids - known for kind, uids in remains(self.made.node, self.made.name).items()}


@pytest.mark.timeout(600)
def test_the_parts_are_killed(tmp_path: Path) -> None:
    with separate(tmp_path) as made:
        course = Course(made, 13)
        for part in ("kubelet", "apiserver", "containerd"):
            course.kill(part)
        course.rest()
        assert course.storm.resizes == 300


def victims() -> list[tuple[str, list[str]]]:
    """200, in ten clusters: which kind of cluster, and which of its parts in which order."""
    choose = random.Random(SEED)
    parts = [*CORE, *BESIDE, "containerd", "shim", "kubelet", "containerd"] * 14
    apart, at_once = parts[:160], ["up", "up", "up", "containerd", "shim"] * 8
    choose.shuffle(apart)
    choose.shuffle(at_once)
    kills = [("separate", apart[start : start + BY_ITSELF]) for start in range(0, len(apart), BY_ITSELF)]
    return kills + [("together", at_once[start : start + BY_ITSELF]) for start in range(0, len(at_once), BY_ITSELF)]


class Record:
    """What was done so far, in a file: a run that was interrupted goes on with the next kill."""

    def __init__(self, path: Path) -> None:
        self._path = path
        begun = json.loads(path.read_text()) if path.exists() else {}
        self.kills: list[str] = begun.get("kills", [])
        self.seconds: list[float] = begun.get("seconds", [])
        self.resizes, self.writes = begun.get("resizes", 0), begun.get("writes", 0)
        self.forced, self.set_aside = begun.get("forced", 0), begun.get("set_aside", 0)
        self.before = len(self.kills)

    def add(self, part: str, seconds: float) -> None:
        self.kills.append(part)
        self.seconds.append(seconds)

    def save(self) -> None:
        told = {name: getattr(self, name) for name in ("kills", "seconds", "resizes", "writes", "forced", "set_aside")}
        self._path.write_text(json.dumps(told))

    def drop(self) -> None:
        self._path.unlink()


@pytest.mark.campaign
@pytest.mark.timeout(2 * WHOLE_SECONDS)
def test_two_hundred_kills(tmp_path: Path, pytestconfig: pytest.Config, figure: Callable[[str, object], None]) -> None:
    """200 SIGKILLs in ten clusters, of the part that a seed says: API server, controllers, scheduler, kubelet,
    containerd, shims, metrics-server, the VPA's three, `podfit up`. Each in the middle of resizes of six pods, with
    ConfigMaps written, pods created and two pods deleted by force, the second when the part has just started again. All
    converges within 40 minutes, no acknowledged write is lost, no container restarts but those of a killed shim, and of
    deleted pods no sandbox, mount, cgroup or directory is left. A run that is interrupted goes on where it was.
    """
    record = Record(pytestconfig.cache.mkdir("kills") / "record.json")
    skipped = record.before
    for number, (kind, parts) in enumerate(victims()):
        left, skipped = parts[skipped:], max(0, skipped - len(parts))
        if left:
            _kill_all(tmp_path / str(number), kind, left, SEED + number, record)
    assert len(record.kills) == sum(len(parts) for _, parts in victims())
    assert sum(record.seconds) < WHOLE_SECONDS
    figure("kills", len(record.kills))
    figure("of them before an interruption", record.before)
    figure("killed", ", ".join(f"{name} {count}" for name, count in sorted(Counter(record.kills).items())))
    figure("acknowledged resizes", record.resizes)
    figure("other acknowledged writes", record.writes)
    figure("pods deleted by force", record.forced)
    figure("pods set aside", record.set_aside)
    figure("seconds", round(sum(record.seconds)))
    record.drop()


def _kill_all(root: Path, kind: str, parts: list[str], seed: int, record: Record) -> None:
    root.mkdir()
    with ExitStack() as stack:
        began = monotonic()
        made: Parts
        if kind == "separate":
            made = stack.enter_context(separate(root, BESIDE))
        else:
            made = stack.enter_context(together(root))
        course = Course(made, seed, pods=6, resizes=3)
        made.up.apply(deployment("busy", "while :; do :; done", BUSY), vpa("busy"))
        for part in parts:
            resizes, writes, forced = course.storm.resizes, course.churn.acknowledged, len(course.churn.gone)
            course.kill(part)
            record.add(part, monotonic() - began)
            record.resizes += course.storm.resizes - resizes
            record.writes += course.churn.acknowledged - writes
            record.forced += len(course.churn.gone) - forced
            record.save()
            began = monotonic()
        course.rest()
        record.set_aside += course.churn.set_aside
        recommended = ("-o", "jsonpath={.status.recommendation.containerRecommendations}")
        what = "the VPA recommends"
        eventually(lambda: made.up.ok("get", "vpa", "busy", *recommended), within=SECONDS, what=what)
        eventually(lambda: made.up.kubectl("top", "nodes").code == 0, within=SECONDS, what="metrics are served")
        made.up.ok("delete", "pods", "-l", LABEL, "--force", "--grace-period=0", timeout=90)
        record.seconds[-1] += monotonic() - began
        record.save()
