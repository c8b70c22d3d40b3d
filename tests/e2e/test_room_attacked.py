"""Making room abused: a tenant of high priority asks for all there is, again and again, beside hostile annotations."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from support.bounded import Victim, bounded
from support.eventually import eventually

Figure = Callable[[str, object], None]
SEED = 24
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
MINIMUM, GAVE = "podfit.dev/minimum", "podfit.dev/gave-room"
WILLING, KEPT, EQUAL = 16, 4, 4
GIVES, LEAST, GUARDED = 120, 40, 3
"""Milli-CPUs that a neighbour has, and its minimum; of four that are not willing, so many may never be missing."""
MINE = 6
SETTLE_SECONDS = 60.0


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


class Attack:
    """A node that is full of `victims`, and a tenant in `attacker` who may use the classes of high priority. Pods that
    it makes later are of the one for which the scheduler preempts nobody: that is not what is asked here."""

    def __init__(self, victim: Victim, seed: int) -> None:
        self.victim, self.chance, self.answers = victim, random.Random(seed), dict[int, int]()
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        self._made(classes, {"metadata": {"name": "high"}, "value": 1000})
        self._made(classes, {"metadata": {"name": "polite"}, "value": 1000, "preemptionPolicy": "Never"})
        for name in ("victims", "attacker"):
            self._made("/api/v1/namespaces", {"metadata": {"name": name}})
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            eventually(
                partial(self.victim.ask, "GET", account),
                lambda answer: answer.status == 200,
                within=SETTLE_SECONDS,
                what="the account is there",
            )
        (node,) = self.victim.ask("GET", "/api/v1/nodes").json()["items"]
        self.room = int(Quantity.parse(node["status"]["allocatable"]["cpu"]).nano // 1_000_000)
        self._pod("victims", "filler", self.room - (WILLING + KEPT + EQUAL) * GIVES - MINE * 100, "high")
        for number in range(WILLING):
            self._pod("victims", f"willing{number}", GIVES, minimum=f"cpu={LEAST}m")
        for number in range(KEPT):
            self._pod("victims", f"kept{number}", GIVES)
        for number in range(EQUAL):
            self._pod("victims", f"equal{number}", GIVES, "high", minimum=f"cpu={LEAST}m")
        budget = {"minAvailable": GUARDED, "selector": {"matchLabels": {"sort": "kept"}}}
        budgets = "/apis/policy/v1/namespaces/victims/poddisruptionbudgets"
        self._made(budgets, {"metadata": {"name": "kept"}, "spec": budget})
        for number in range(MINE):
            self._pod("attacker", f"a{number}", 100, "high")
        eventually(self._all_run, within=SETTLE_SECONDS, what="all of them run")
        self.before = {pod["metadata"]["name"]: pod for pod in self.listed("victims")}

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> int:
        status = self.victim.ask(method, path, body, content_type=kind).status
        self.answers[status] = self.answers.get(status, 0) + 1
        assert status < 500, f"{method} {path}: {status}"
        return status

    def listed(self, namespace: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.victim.ask("GET", pods(namespace)).json()["items"]
        return items

    def _all_run(self) -> bool:
        both = [*self.listed("victims"), *self.listed("attacker")]
        return all(pod["status"].get("phase") == "Running" for pod in both)

    def _made(self, path: str, body: Any) -> None:
        assert self.ask("POST", path, body) == 201

    def _pod(self, namespace: str, name: str, milli: int, priority: str = "", minimum: str = "") -> None:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": f"{milli}m"}}}
        meta = {"name": name, "labels": {"sort": name.rstrip("0123456789")}}
        meta |= {"annotations": {MINIMUM: minimum}} if minimum else {}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        self._made(
            pods(namespace), {"metadata": meta, "spec": spec | ({"priorityClassName": priority} if priority else {})}
        )

    # ------------------------------------------------------------------ what the tenant does

    def step(self) -> None:
        name = f"a{self.chance.randrange(MINE)}"
        path = f"{pods('attacker')}/{name}"
        match self.chance.randrange(10):
            case 0:
                self.ask("PATCH", path, {"metadata": {"annotations": {MINIMUM: self._minimum()}}}, MERGE)
            case 1:
                self.ask("PATCH", path, {"metadata": {"annotations": {GAVE: self._note()}}}, MERGE)
            case 2:
                self.ask("DELETE", path)
                eventually(lambda: self.ask("GET", path) == 404, within=SETTLE_SECONDS, what="it is gone")
                self._pod("attacker", name, self.chance.randrange(1, 200), "polite", self._minimum())
            case _:
                milli = self.chance.choice((1, 100, 500, GIVES * WILLING, self.room, 10 * self.room))
                requests = {"cpu": f"{self.chance.randrange(1, milli + 1)}m"}
                resized = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
                self.ask("PATCH", f"{path}/resize", resized, STRATEGIC)

    def _minimum(self) -> str:
        many = ",".join(f"c:a{number}=1" for number in range(4_000))
        texts = (
            "cpu=0",
            "cpu=-1",
            "cpu=1e999",
            "c:cpu=1m",
            "d:cpu=1m",
            "cpu=1m,cpu=1m",
            "restart=allowed",
            "=",
            ",,",
            many,
        )
        return self.chance.choice(texts)

    def _note(self) -> str:
        sides = '{"requests":{"cpu":"9"},"limits":{}}'
        whole = f'{{"to":"victims/kept0","before":{{"c":{sides}}},"after":{{"c":{sides}}}}}'
        return self.chance.choice((whole, whole[:-5], "[" * 30_000, '{"to":1}', "null", ""))

    # ------------------------------------------------------------------ what may not be

    def wrong(self, *, evict: bool) -> list[str]:
        """What became of the neighbours that may not."""
        now, found = {pod["metadata"]["name"]: pod for pod in self.listed("victims")}, list[str]()
        kept = [name for name in now if name.startswith("kept")]
        if len(kept) < (GUARDED if evict else KEPT):
            found.append(f"of those who did not agree {kept} are left")
        for name, before in self.before.items():
            pod = now.get(name)
            if pod is None or pod["metadata"]["uid"] != before["metadata"]["uid"]:
                if not evict or name.startswith(("equal", "filler")):
                    found.append(f"{name} is gone")
                continue
            cpu = Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            had = Quantity.parse(before["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            least = Quantity.of_milli(LEAST) if name.startswith("willing") else had
            if not least <= cpu <= had:
                found.append(f"{name} has {cpu} of {had}")
            if any(status["restartCount"] for status in pod["status"].get("containerStatuses", ())):
                found.append(f"{name} was restarted")
        return found


def attacked(root: Path, mode: str, steps: int, figure: Figure) -> None:
    evict = mode == "preempt"
    option = "--make-room=preempt" if evict else "--make-room"
    with bounded(root / "cluster", option, node="simulated") as victim:
        attack = Attack(victim, SEED)

        def abuse() -> None:
            for number in range(steps):
                attack.step()
                if number % 10 == 0:
                    assert attack.wrong(evict=evict) == []

        figures = victim.measure("making room", abuse, settle=1.0)
        assert attack.wrong(evict=evict) == []
        shrunk = [pod for pod in attack.listed("victims") if GAVE in pod["metadata"].get("annotations", {})]
        gone = len(attack.before) - len(attack.listed("victims"))
        figure("answers", ", ".join(f"{status} {count}" for status, count in sorted(attack.answers.items())))
        figure("neighbours", f"that gave {len(shrunk)}, evicted {gone}")
        figure("longest turn", f"{figures.turn_ms:.0f} ms")
        figure("second client p99", f"{figures.p99_ms:.0f} ms")
        figure("grew", f"{figures.peak_mib:.0f} MiB, kept {figures.kept_mib:.0f} MiB")
        figures.check()
        if steps > 50:
            assert shrunk or gone
        attack.ask("DELETE", pods("attacker"))
        again = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}]}}
        equal = f"{pods('victims')}/equal0"
        assert attack.ask("PATCH", f"{equal}/resize", again, STRATEGIC) == 200

        def resized() -> bool:
            status = victim.ask("GET", equal).json()["status"]
            return bool(status["containerStatuses"][0].get("allocatedResources", {}).get("cpu") == "300m")

        eventually(resized, within=SETTLE_SECONDS, what="a neighbour is resized when the tenant has gone")


@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["shrink", "preempt"])
def test_making_room_abused_many_times(tmp_path: Path, mode: str, figure: Figure) -> None:
    """Making room abused: a tenant whose pods have a high priority asks for all that there is, 400 times at random,
    with hostile annotations, forged notes and pods made anew. Neighbours who do not agree, and those of equal priority,
    keep what they have, nobody goes below their minimum or restarts, no budget is broken, and the cluster stays within
    the bounds of turns and growth."""
    attacked(tmp_path, mode, 400, figure)


def test_making_room_abused(tmp_path: Path, figure: Figure) -> None:
    attacked(tmp_path, "preempt", 6, figure)
