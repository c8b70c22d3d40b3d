"""What `-f` may name: stdin, and files that are no manifest, each told in one line."""

import io
from pathlib import Path

import msgspec
import pytest

from answers.conversation import Conversation, pod
from cli.test_questions import ask, of_a_deployment
from podfit.cli.questions.manifests import MOST

MANIFEST = msgspec.json.encode({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": pod(cpu="1")}})
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % (name, name, *[name - 1] * 9) for name in b"bcdefghi"
)
FILES = {
    "broken.yaml": (b"spec:\n  a: b: c\n", "line 2, column 7: mapping values are not allowed here"),
    "tab.yaml": (b"spec:\n\t- x\n", "line 2, column 1: found character '\\t' that cannot start any token"),
    "empty": (b"", "the file is empty"),
    "comment.yaml": (b"# nothing\n---\n", "the file is empty"),
    "binary": (bytes(range(256)) * 8, "not a text file (byte 128 is not UTF-8)"),
    "nul": (b"spec: \0\0", "not a text file"),
    "list.yaml": (b"- a\n- b\n", None),
    "scalar.yaml": (b"hello\n", None),
    "huge.yaml": (b"#" * (MOST + 1), "larger than 8 MiB"),
    "bomb.yaml": (BOMB, "its aliases expand to more than 8 million values"),
    "itself.yaml": (b"&a [*a]\n", "its aliases expand to more than 8 million values"),
    "deep.yaml": (b"[" * 5000, "nested too deeply"),
    "date.yaml": (b"when: 2026-99-99\n", "not a YAML file: month must be in 1..12"),
}


@pytest.mark.parametrize("verb", ["plan", "export"])
@pytest.mark.parametrize("name", [*FILES, "directory", "absent.yaml"])
async def test_a_file_that_is_no_manifest_is_told_in_one_line_and_the_help_of_the_verb(
    verb: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, said = tmp_path / name, None
    if name in FILES:
        data, said = FILES[name]
        path.write_bytes(data)
    elif name == "directory":
        path.mkdir()
        said = "is a directory"
    else:
        said = "No such file or directory"
    arguments = ["plan", "deploy/web", "-f", str(path)]
    if verb == "export":
        arguments = ["export", "deploy/web", "--drift", "-f", str(path)]
    assert await ask(tmp_path, of_a_deployment(pod("web-1")), *arguments) == 2
    captured = capsys.readouterr()
    line, see = captured.err.splitlines()
    assert see == f"  see:  podfit {verb} --help"
    assert line.startswith(f"error: {path}: ")
    assert len(line) < 300
    if said:
        assert line == f"error: {path}: {said}"


@pytest.mark.parametrize("words", [("-f", "-"), ("-f=-",), ("--filename", "-"), ("--filename=-",)])
@pytest.mark.parametrize("before", [True, False])
async def test_stdin_is_a_manifest(
    words: tuple[str, ...],
    *,
    before: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def piped() -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MANIFEST)))

    piped()
    plan = ["plan", *words, "pod/web"] if before else ["plan", "pod/web", *words]
    assert await ask(tmp_path, Conversation(36, pod()), *plan) == 0
    assert "500m/500m → 1/1 " in capsys.readouterr().out
    piped()
    export = ["export", "deploy/web", "--drift"]
    assert await ask(tmp_path, of_a_deployment(pod("web-1", cpu="1")), *export, *words) == 0
    assert "1 pod runs with the sizes of stdin" in capsys.readouterr().out


async def test_several_documents_with_one_target_are_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    path.write_bytes(b"kind: Service\n---\n" + MANIFEST)
    assert await ask(tmp_path, of_a_deployment(pod("web-1")), "plan", "deploy/web", "-f", str(path)) == 2
    said = "2 documents for one target; plan all of them by leaving out the target"
    assert capsys.readouterr().err == f"error: {path}: {said}\n  see:  podfit plan --help\n"


def sized(name: str, cpu: str, **meta: str) -> bytes:
    amounts = {"cpu": cpu, "memory": "256Mi"}
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **meta},
            "spec": {"containers": [{"name": "app", "resources": {"requests": amounts, "limits": amounts}}]},
        }
    )


async def test_without_a_target_every_document_names_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two pods that trade sizes: what asks for less goes first, and its room counts for the other."""
    path = tmp_path / "all.yaml"
    path.write_bytes(b"kind: Service\n---\n" + sized("b", "3") + b"\n---\n" + sized("a", "1"))
    cluster = Conversation(36, pod("a", cpu="3"), pod("b", cpu="1"))
    assert await ask(tmp_path, cluster, "plan", "-f", str(path), "-o", "json") == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert [(pod["pod"], pod["namespace"], pod["verdict"]) for pod in found["pods"]] == [
        ("a", "shop", "fits"),
        ("b", "shop", "fits"),
    ]
    assert found["order"] == ["a", "b"]


async def test_resize_takes_all_that_a_manifest_names_in_the_order_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    path.write_bytes(b"kind: Service\n---\n" + sized("b", "3") + b"\n---\n" + sized("a", "1"))
    cluster = Conversation(36, pod("a", cpu="3"), pod("b", cpu="1"))
    assert await ask(tmp_path, cluster, "plan", "-f", str(path)) == 0
    assert f"next: podfit resize -f {path} --kubeconfig" in capsys.readouterr().out
    assert await ask(tmp_path, cluster, "resize", "-f", str(path)) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(" after")[0] for line in out] == [
        "1/2  a  cpu 3/3 → 1/1  done",
        "2/2  b  cpu 1/1 → 3/3  done",
        "2 of 2 pods resized",
    ]
    assert await ask(tmp_path, cluster, "resize", "-f", str(path), "--cpu", "1") == 2
    assert await ask(tmp_path, cluster, "resize") == 2
    assert "a target is required" in capsys.readouterr().err


async def test_what_a_manifest_names_and_is_not_there_keeps_nothing_from_being_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Job that is over, or a workload that is not deployed yet."""
    path = tmp_path / "all.yaml"
    path.write_bytes(sized("gone", "1") + b"\n---\n" + sized("a", "1"))
    assert await ask(tmp_path, Conversation(36, pod("a", cpu="3")), "plan", "-f", str(path)) == 0
    out = capsys.readouterr().out
    assert "a     n1     3/3 → 1/1" in out
    assert "not read: pod/gone in namespace shop: " in out
    path.write_bytes(sized("gone", "1"))
    assert await ask(tmp_path, Conversation(36, pod("a")), "plan", "-f", str(path)) == 4


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        (b"kind: Service\n", "no document is a pod or a workload"),
        (sized("a", "1") + b"\n---\n" + sized("a", "2"), "pod/a in namespace shop occurs twice"),
        (b'{"apiVersion": "v1", "kind": "Pod"}', "a Pod has no metadata.name"),
        (b"- a\n", "a document is not an object"),
    ],
)
async def test_documents_that_name_no_resize_are_told(
    documents: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    path.write_bytes(documents)
    assert await ask(tmp_path, Conversation(36, pod("a")), "plan", "-f", str(path)) == 2
    assert capsys.readouterr().err == f"error: {path}: {said}\n  see:  podfit plan --help\n"
    assert await ask(tmp_path, Conversation(36, pod("a")), "plan", "--cpu", "1") == 2
    assert "a target is required" in capsys.readouterr().err
