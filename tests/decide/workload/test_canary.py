"""The canary's decision over observations, and how its triggers are written."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.workload.canary import (
    Canary,
    GoBack,
    Gone,
    GoOn,
    Seen,
    Throttled,
    TimeUp,
    Triggers,
    begin,
    step,
    triggers,
)


def pod(*, ready: bool = True, restarts: int = 0, reason: str = "", running: bool = True, uid: str = "u") -> Pod:
    end = {"terminated": {"exitCode": 137, "reason": reason}}
    status = {"name": "c", "image": "i", "imageID": "", "restartCount": restarts, "ready": ready}
    status |= {"state": {"running": {}} if running else end, "lastState": end if reason and running else {}}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    document = {
        "metadata": {"name": "p", "uid": uid},
        "status": {"containerStatuses": [status], "conditions": [condition]},
    }
    return convert(document, Pod)


def begun(on: str, *, planned: bool = False, before: Pod | None = None) -> Canary:
    return begin(triggers(on), [before or pod()], {"u": ["c"]} if planned else {})


@pytest.mark.parametrize(
    ("on", "seen", "why"),
    [
        ("restart", Seen(pod(restarts=1, reason="Error")), "p: c was restarted (exit code 137, Error)"),
        ("oom", Seen(pod(restarts=1, reason="OOMKilled")), "p: c ran out of memory"),
        ("oom", Seen(pod(reason="OOMKilled", running=False)), "p: c ran out of memory"),
        ("restart,oom", Gone("u"), "p was deleted"),
        ("throttled>10%", Throttled("p", "c", 0.11), "p: c was throttled in 11% of its periods"),
        ("unready", TimeUp(), "p did not become ready again"),
    ],
)
def test_what_goes_back(on: str, seen: Seen | Gone | Throttled | TimeUp, why: str) -> None:
    assert step(begun(on), seen)[1] == GoBack(why)


@pytest.mark.parametrize(
    ("on", "seen"),
    [
        ("oom", Seen(pod(restarts=1, reason="Error"))),
        ("oom,unready,throttled>0%", Seen(pod(restarts=3))),
        ("restart", Seen(pod(restarts=3, uid="another"))),
        ("restart", Gone("another")),
        ("throttled>10%", Throttled("p", "c", 0.1)),
        ("restart", Throttled("p", "c", 1.0)),
        ("unready", Seen(pod(ready=False))),
    ],
)
def test_what_is_watched_on(on: str, seen: Seen | Gone | Throttled) -> None:
    assert step(begun(on), seen)[1] is None


def test_a_planned_restart_is_allowed_once() -> None:
    canary, verdict = step(begun("restart,unready", planned=True), Seen(pod(ready=False, restarts=1)))
    assert verdict is None
    canary, verdict = step(canary, Seen(pod(restarts=1)))
    assert verdict is None
    assert step(canary, TimeUp())[1] == GoOn()
    assert step(canary, Seen(pod(ready=False, restarts=1)))[1] == GoBack("p is not ready any more")
    assert step(canary, Seen(pod(restarts=2)))[1] == GoBack("p: c was restarted")


def test_one_that_was_not_ready_before_need_not_become_so() -> None:
    canary = begun("unready", before=pod(ready=False))
    assert step(canary, TimeUp())[1] == GoOn()
    assert step(begun("restart", before=pod(restarts=4)), Seen(pod(restarts=4)))[1] is None


def test_how_triggers_are_written() -> None:
    assert triggers(" restart , throttled>10%") == Triggers(restart=True, throttled=0.1)
    assert str(triggers("oom,unready,restart,throttled>5%")) == "restart, oom, unready, throttled > 5%"
    for text in ("", ",", "crash", "throttled", "throttled>10", "throttled>100%", "oom>5%", "throttled>-1%"):
        with pytest.raises(ValueError, match=r"restart|throttled>"):
            triggers(text)
