"""What stands in a user's kubeconfig outlives a merge and its undoing: entries, fields, order, comments, bytes."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podfit.client.kubeconfig import Access, KubeconfigError, load
from podfit.client.kubeconfig_edit import merge, remove

OURS = Access("https://127.0.0.1:6443", b"ca", b"cert", b"key")
THEIRS = """\
# what I work with
apiVersion: v1
kind: Config
current-context: prod   # careful
preferences: {colors: true}
clusters:
# the real one
- name: prod
  cluster: {server: https://prod, certificate-authority: pki/ca.crt}
  x-unknown: 0123   # kept as it is
users: [{name: admin, user: {token: "1e3"}}]
contexts:
  - context:
      cluster: prod
      user: admin
    name: prod
  # the last word
"""


def test_the_text_that_is_not_ours_stays_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "config"
    text = THEIRS.replace(
        'users: [{name: admin, user: {token: "1e3"}}]', "users:\n- name: admin\n  user:\n    token: '1e3'"
    )
    path.write_text(text)
    merge(path, "podfit", OURS, owner="us", switch=True)
    merged = path.read_text()
    assert load([path]) == OURS
    assert [line for line in text.splitlines() if line not in merged] == ["current-context: prod   # careful"]
    assert "current-context: podfit   # careful" in merged
    remove(path, "podfit", owner="us")
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text", [THEIRS, json.dumps(yaml.safe_load(THEIRS)), "{apiVersion: v1, contexts: []}", "# only a comment\n"]
)
def test_other_layouts_lose_nothing_but_comments(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    before = yaml.safe_load(text) or {}
    merge(path, "podfit", OURS, owner="us", switch=True)
    assert load([path]) == OURS
    remove(path, "podfit", owner="us")
    after = yaml.safe_load(path.read_text())
    assert {key: after[key] for key in before} == before
    assert "x-unknown: 0123" in path.read_text() or "x-unknown" not in text or "83" in text
    assert "# only a comment" in path.read_text() or "only" not in text


def test_an_entry_of_that_name_that_is_not_ours_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "config"
    merge(path, "podfit", Access("https://theirs", token="secret"), owner="them")
    before = path.read_bytes()
    merge(path, "podfit", OURS, owner="us", switch=True)
    assert load([path], context="podfit").token == "secret"
    assert load([path]) == OURS == load([path], context="podfit-2")
    remove(path, "podfit", owner="us")
    assert path.read_bytes() == before


def test_the_context_before_two_of_ours_is_current_again_whichever_ends_first(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for order in (("one", "two"), ("two", "one")):
        path.write_text(THEIRS)
        for owner in ("one", "two"):
            merge(path, "podfit", OURS, owner=owner, switch=True)
        for owner in order:
            remove(path, "podfit", owner=owner)
        assert yaml.safe_load(path.read_text()) == yaml.safe_load(THEIRS)


def test_an_owner_that_has_ended_makes_room(tmp_path: Path) -> None:
    path = tmp_path / "config"
    merge(path, "podfit", Access("https://old", b"old ca"), owner="them")
    assert merge(path, "podfit", OURS, owner="us", ended=lambda owner: owner == "them").name == "podfit"
    assert load([path]) == OURS


def test_entries_of_an_earlier_version_are_told_by_their_authority(tmp_path: Path) -> None:
    path = tmp_path / "config"
    merge(path, "podfit", OURS, owner="us")
    document = yaml.safe_load(path.read_text())
    del document["contexts"][0]["context"]["extensions"]
    path.write_text(yaml.safe_dump(document))
    remove(path, "podfit", owner="us", authorities=b"another")
    assert load([path]) == OURS
    remove(path, "podfit", owner="us", authorities=b"ca")
    assert yaml.safe_load(path.read_text())["contexts"] == []


def test_the_context_before_is_current_again_only_where_ours_still_was(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    for chosen, after in (("podfit", "prod"), ("prod", "prod"), ("elsewhere", "elsewhere")):
        merge(path, "podfit", OURS, owner="us", switch=True)
        merge(path, "podfit", OURS, owner="us", switch=True)  # a second start remembers what was before the first
        path.write_text(path.read_text().replace("current-context: podfit", f"current-context: {chosen}"))
        remove(path, "podfit", owner="us")
        assert yaml.safe_load(path.read_text())["current-context"] == after


def test_what_the_user_set_in_our_context_stays(tmp_path: Path) -> None:
    path = tmp_path / "config"
    merge(path, "podfit", OURS, owner="us")
    path.write_text(path.read_text().replace("namespace: default", "namespace: shop"))
    merge(path, "podfit", Access("https://127.0.0.1:7000", b"ca"), owner="us")
    assert load([path]) == Access("https://127.0.0.1:7000", b"ca", namespace="shop")


@pytest.mark.parametrize(
    "text", ["clusters: [", "- a\n- b\n", "a: b\n---\nc: d\n", "\x00" * 99, "[" * 20_000, "x" * (9 << 20)]
)
def test_a_damaged_file_is_refused_and_left_as_it_is(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match="config"):
        merge(path, "podfit", OURS, owner="us")
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["config"]


def test_the_owner_of_a_file_that_root_writes_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    path = tmp_path / "config"
    path.write_text(THEIRS)
    os.chown(path, 65534, 65534)
    path.chmod(0o600)
    merge(path, "podfit", OURS, owner="us")
    assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (65534, 65534, 0o600)


NAMES = st.text("abc-:#' \"é", min_size=1, max_size=5)
VALUES = NAMES | st.integers() | st.booleans() | st.none() | st.lists(NAMES, max_size=2)
ENTRIES = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"x": st.dictionaries(NAMES, VALUES)}), max_size=3)
FILES = st.fixed_dictionaries(
    {}, optional={"clusters": ENTRIES, "users": ENTRIES, "contexts": ENTRIES, "current-context": NAMES, "other": VALUES}
)


@settings(max_examples=60, deadline=None)
@given(document=FILES, flow=st.sampled_from([None, False, True]), indent=st.sampled_from([2, 4]))
def test_any_file_says_the_same_after_a_merge_and_its_undoing(
    document: dict[str, Any], flow: bool | None, indent: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "config"
    path.write_text(yaml.safe_dump(document, default_flow_style=flow, indent=indent, allow_unicode=True))
    merge(path, "podfit", OURS, owner="us", switch=True)
    assert load([path]) == OURS
    remove(path, "podfit", owner="us")
    after = yaml.safe_load(path.read_text())
    kept = dict(document)
    contexts = {entry["name"] for entry in document.get("contexts", [])}
    if kept.get("current-context", "") not in contexts:
        kept["current-context"] = ""  # it named nothing
    assert {key: after[key] for key in kept} == kept


KILLED = """
import sys, itertools
from pathlib import Path
from podfit.client.kubeconfig import Access
from podfit.client.kubeconfig_edit import merge, remove
print("started", flush=True)
for number in itertools.count():
    merge(Path(sys.argv[1]), "podfit", Access(f"https://127.0.0.1:{number}", b"ca"), owner="us", switch=True)
    remove(Path(sys.argv[1]), "podfit", owner="us")
"""


def test_a_kill_at_any_moment_loses_nothing_and_holds_up_nobody(tmp_path: Path) -> None:
    path, chance = tmp_path / "config", random.Random(7)
    path.write_text(THEIRS)
    before = yaml.safe_load(THEIRS)
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline()
            try:
                process.wait(chance.uniform(0.0, 0.1))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        there = yaml.safe_load(path.read_text())
        for section in ("clusters", "users", "contexts"):
            assert [entry for entry in there[section] if entry["name"] != "podfit"] == before[section]
        assert merge(path, "podfit", OURS, owner="us").name == "podfit"
        remove(path, "podfit", owner="us")
        assert yaml.safe_load(path.read_text()) == before


UNFINISHED = """
import os, sys
from pathlib import Path
from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access
kubeconfig_edit._claim = lambda held: os.kill(os.getpid(), 9)
kubeconfig_edit.merge(Path(sys.argv[1]), "podfit", Access("https://127.0.0.1:1"), owner="us")
"""


def test_a_kill_before_the_lock_says_whose_it_is_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    assert subprocess.run([sys.executable, "-c", UNFINISHED, str(path)], check=False).returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["config"]
    assert merge(path, "podfit", OURS, owner="us").name == "podfit"
