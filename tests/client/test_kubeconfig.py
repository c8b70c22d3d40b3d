import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access, KubeconfigError, default_paths, find, load
from podfit.client.kubeconfig_edit import merge, remove, standalone
from podfit.client.kubeconfig_text import block

OURS = Access("https://127.0.0.1:6443", b"ca", b"cert", b"key")
THEIRS = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "work",
    "preferences": {"colors": True},
    "clusters": [{"name": "work", "cluster": {"server": "https://work", "certificate-authority": "pki/ca.crt"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me", "namespace": "shop"}}],
}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(THEIRS))
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_bytes(b"their ca")
    return path


def test_the_current_context_is_resolved_with_files_relative_to_its_own(theirs: Path) -> None:
    assert load([theirs]) == Access("https://work", b"their ca", token="secret", namespace="shop")


def test_merging_leaves_everything_else_alone(theirs: Path) -> None:
    merge(theirs, "podfit", Access("https://old"), owner="us")
    merge(theirs, "podfit", OURS, owner="us")
    assert load([theirs], context="podfit") == OURS
    document = yaml.safe_load(theirs.read_text())
    assert document["current-context"] == "work"
    assert document["preferences"] == {"colors": True}
    assert [entry["name"] for entry in document["contexts"]] == ["work", "podfit"]
    assert theirs.stat().st_mode & 0o777 == 0o600
    remove(theirs, "podfit", owner="us")
    assert yaml.safe_load(theirs.read_text()) == THEIRS
    assert os.listdir(theirs.parent).count("config.lock") == 0


def test_merging_makes_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / ".kube" / "config"
    merge(path, "podfit", OURS, owner="us", switch=False)
    assert load([path], context="podfit") == OURS
    with pytest.raises(KubeconfigError, match="no current context"):
        load([path])


def test_a_link_stays_a_link(theirs: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(theirs)
    merge(link, "podfit", OURS, owner="us")
    assert link.is_symlink()
    assert load([theirs], context="podfit") == OURS


def test_removing_what_is_not_there_writes_nothing(theirs: Path) -> None:
    before = theirs.stat()
    remove(theirs, "podfit", owner="us")
    assert theirs.stat() == before


def test_where_a_removed_context_was_current_the_one_before_is_again(theirs: Path) -> None:
    merge(theirs, "podfit", OURS, owner="us")
    theirs.write_text(theirs.read_text().replace("current-context: work", "current-context: podfit"))
    remove(theirs, "podfit", owner="us")
    assert yaml.safe_load(theirs.read_text())["current-context"] == "work"


def test_a_standalone_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(standalone("podfit", OURS))
    assert load([path]) == OURS


SHORT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8)  # as names and tokens are
TEXTS = SHORT | st.sampled_from(["true", "No", "1.5", "a: b", "x:", "-", "#", "~", "0x1", "A+/=", "a#b"])
DOCUMENTS = st.recursive(
    TEXTS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["name", "data-x", "k"]), DOCUMENTS, min_size=1, max_size=3))
def test_what_is_written_by_hand_is_read_by_the_library(document: dict[str, object]) -> None:
    assert yaml.safe_load("".join(f"{line}\n" for line in block(document))) == document


def test_the_first_of_several_files_counts(theirs: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text(
        yaml.safe_dump({"clusters": [{"name": "work", "cluster": {"server": "https://other"}}], "current-context": ""})
    )
    paths = default_paths({"KUBECONFIG": f"{first}{os.pathsep}{theirs}{os.pathsep}/nowhere"})
    assert load(paths).server == "https://other"
    assert load(paths).token == "secret"
    assert default_paths({"HOME": "/home/me"}) == [Path("/home/me/.kube/config")]


def test_the_way_to_the_server_and_whom_to_be_there(theirs: Path) -> None:
    document = yaml.safe_load(theirs.read_text())
    document["clusters"][0]["cluster"] |= {"proxy-url": "http://proxy:3128", "tls-server-name": "api.work"}
    document["users"][0]["user"] |= {
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"a/b": ["1", "2"]},
    }
    theirs.write_text(yaml.safe_dump(document))
    reach = load([theirs]).reach
    assert (reach.proxy, reach.server_name) == ("http://proxy:3128", "api.work")
    assert reach.headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-a%2Fb", "1"),
        ("Impersonate-Extra-a%2Fb", "2"),
    )


def test_a_server_may_go_unverified_and_a_context_without_a_user(theirs: Path) -> None:
    document = yaml.safe_load(theirs.read_text())
    document["clusters"][0]["cluster"] = {"server": "https://work", "insecure-skip-tls-verify": True}
    del document["contexts"][0]["context"]["user"]
    theirs.write_text(yaml.safe_dump(document))
    assert load([theirs]) == Access("https://work", namespace="shop", verify=False)


def test_inside_a_pod_its_service_account_counts_where_there_is_no_file(
    tmp_path: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = tmp_path / "serviceaccount"
    account.mkdir()
    for name, content in (("token", "secret\n"), ("ca.crt", "ca"), ("namespace", "shop")):
        (account / name).write_text(content)
    monkeypatch.setattr("podfit.client.kubeconfig.SERVICE_ACCOUNT", account)
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    found = find(inside)
    assert found == Access("https://[fd00::1]:443", b"ca", token_file=account / "token", namespace="shop")
    assert found.read_token() == "secret"
    assert find(inside | {"KUBECONFIG": str(theirs)}).server == find(inside, theirs).server == "https://work"
    with pytest.raises(KubeconfigError, match="no such file"):
        find({"HOME": str(tmp_path)})


def test_a_token_file_is_read_every_time(theirs: Path, tmp_path: Path) -> None:
    theirs.write_text(theirs.read_text().replace("token: secret", "tokenFile: tok"))
    (tmp_path / "tok").write_text("one\n")
    access = load([theirs])
    assert access.read_token() == "one"
    (tmp_path / "tok").write_text("two\n")
    assert access.read_token() == "two"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name: me", "name: you"), "there is no user named 'me'"),
        (
            ("server: https://work", "server: https://work\n    proxy-url: socks5://here:1080"),
            "cluster 'work': proxy-url 'socks5://here:1080' cannot be used",
        ),
        (
            ("server: https://work", "server: https://work\n    insecure-skip-tls-verify: true"),
            "cluster 'work' has both insecure-skip-tls-verify and a certificate-authority",
        ),
        (("token: secret", "as-groups: [a]"), "user 'me': as-groups, as-uid and as-user-extra need an `as`"),
        (("server: https://work", "proxy-url: x"), "cluster 'work' has no server"),
        (("token: secret", "username: me"), "signs in by username, which Kubernetes has given up"),
        (("token: secret", "exec: {command: x}"), "user 'me': exec: apiVersion '' is not one of"),
        (("certificate-authority:", "certificate-authority-data:"), "certificate-authority-data is not base64"),
        (("pki/ca.crt", "pki/none.crt"), "certificate-authority: .*none.crt"),
        (("apiVersion: v1", "[: x"), "is not understood: while parsing"),
        (("clusters:\n", "clusters: 3\nx:\n"), "is not a kubeconfig"),
    ],
)
def test_what_cannot_be_used_is_named(theirs: Path, change: tuple[str, str], message: str) -> None:
    theirs.write_text(theirs.read_text().replace(*change))
    with pytest.raises(KubeconfigError, match=message):
        load([theirs])


def test_a_file_somebody_else_is_writing_is_left_alone(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig_edit, "_PATIENCE", 0.1)
    (theirs.parent / "config.lock").touch()
    with pytest.raises(KubeconfigError, match="being written by somebody else"):
        merge(theirs, "podfit", OURS, owner="us")
    assert yaml.safe_load(theirs.read_text()) == THEIRS


@given(text=st.text(max_size=40))
def test_any_text_loads_or_says_why(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(KubeconfigError):
        load([path])


@pytest.mark.parametrize(("before", "after"), [(None, "podfit"), ("", "podfit"), ("work", "work")])
def test_a_context_becomes_current_only_where_there_is_none(before: str | None, after: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    if before is not None:
        path.write_text(yaml.safe_dump({**THEIRS, "current-context": before}))
    merge(path, "podfit", OURS, owner="us")
    assert yaml.safe_load(path.read_text())["current-context"] == after
