"""Addresses whose pods are gone are freed; those of pods that are there, or may be being made, stay."""

import os
from pathlib import Path

from podfit.kubelet.network.leftovers import NetworkTraces

NOW = 1_000_000.0


def traces(tmp_path: Path) -> NetworkTraces:
    return NetworkTraces("podfit-1a", tmp_path / "addresses", tmp_path / "state", tmp_path / "results")


def taken(tmp_path: Path, address: str, sandbox: str, *, age: float) -> None:
    places = [
        (tmp_path / "addresses/podfit-1a" / address, f"{sandbox}\r\neth0"),
        (tmp_path / f"results/podfit-1a-{sandbox}-eth0", "{}"),
        (tmp_path / f"results/cni-loopback-{sandbox}-lo", "{}"),
    ]
    for path, text in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (NOW - age, NOW - age))


def test_only_old_addresses_of_sandboxes_that_are_gone_are_freed(tmp_path: Path) -> None:
    taken(tmp_path, "10.244.0.2", "lives", age=500)
    taken(tmp_path, "10.244.0.3", "gone", age=500)
    taken(tmp_path, "10.244.0.4", "new", age=5)
    (tmp_path / "addresses/podfit-1a/last_reserved_ip.0").write_text("10.244.0.4")
    (tmp_path / "results/others-gone-eth0").write_text("{}")
    assert traces(tmp_path).sweep({"lives"}, NOW, 120) == ["address 10.244.0.3"]
    assert set(traces(tmp_path).taken()) == {"10.244.0.2", "10.244.0.4"}
    assert {path.name for path in (tmp_path / "results").iterdir()} == {
        "others-gone-eth0",
        "podfit-1a-lives-eth0",
        "cni-loopback-lives-lo",
        "podfit-1a-new-eth0",
        "cni-loopback-new-lo",
    }


def test_an_answer_that_was_not_written_whole_goes_once_nobody_writes_it(tmp_path: Path) -> None:
    """libcni takes down no sandbox that has one, so its pod was stuck for good; of another network it is not ours."""
    results = tmp_path / "results"
    for sandbox, age in (("whole", 30), ("broken", 30), ("now", 1)):
        taken(tmp_path, f"10.244.0.{len(sandbox)}", sandbox, age=age)
    for name, age in (("podfit-1a-broken-eth0", 30), ("cni-loopback-broken-lo", 30), ("podfit-1a-now-eth0", 1)):
        (results / name).write_text("")
        os.utime(results / name, (NOW - age, NOW - age))
    (results / "others-broken-eth0").write_text("")
    names = {path.name for path in results.iterdir()}
    freed = traces(tmp_path).sweep({"whole", "broken", "now"}, NOW, 120)
    gone = {"podfit-1a-broken-eth0", "cni-loopback-broken-lo"}
    assert freed == [f"broken answer of a plugin {name}" for name in sorted(gone, reverse=True)]
    assert {path.name for path in results.iterdir()} == names - gone
    assert set(traces(tmp_path).taken()) == {"10.244.0.5", "10.244.0.6", "10.244.0.3"}


def test_at_the_end_all_of_them_go_and_nothing_of_others(tmp_path: Path) -> None:
    taken(tmp_path, "10.244.0.2", "lives", age=1)
    (tmp_path / "results/others-gone-eth0").write_text("{}")
    assert traces(tmp_path).lines()
    traces(tmp_path).remove()
    assert traces(tmp_path).lines() == []
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["others-gone-eth0"]


def test_a_machine_that_never_had_any(tmp_path: Path) -> None:
    assert traces(tmp_path).sweep((), NOW, 0) == []
    traces(tmp_path).remove()
