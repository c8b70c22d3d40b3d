"""Logs that grow are set aside, and no more than a few of them are kept."""

from pathlib import Path

import pytest

from kubelet.harness import Node
from podfit.decide.lifecycle.facts import ContainerStatus
from podfit.kubelet.runtime.log_rotation import MOST_BYTES, MOST_FILES, delete_log, rotated

LINE = b"2026-01-01T00:00:00Z stdout F text\n"


def log_of(node: Node) -> Path:
    return Path(node.runtime.running("c1").log_path)


def fill(path: Path) -> None:
    with path.open("ab") as file:
        file.write(LINE)
        file.truncate(MOST_BYTES + 1)


def kept(path: Path) -> list[str]:
    return sorted(log.name for log in rotated(path))


async def test_a_large_log_is_set_aside_and_few_are_kept(node: Node) -> None:
    node.add()
    await node.runs()
    path = log_of(node)
    for _ in range(MOST_FILES + 2):
        fill(path)
        await node.advance(10)
        assert path.stat().st_size == 0, "the runtime was told to begin another"
    assert len(kept(path)) == MOST_FILES - 1
    assert kept(path)[-1] == "0.log.20260101-000110"
    await node.advance(30)
    assert len([call for call in node.runtime.calls if call == "reopen c1"]) == MOST_FILES + 2


async def test_a_log_that_the_runtime_does_not_begin_anew_is_put_back(node: Node) -> None:
    node.add()
    await node.runs()
    node.runtime.fail["reopen"] = "not implemented"
    fill(log_of(node))
    await node.advance(10)
    assert (log_of(node).stat().st_size, kept(log_of(node))) == (MOST_BYTES + 1, [])


async def test_who_follows_a_log_reads_on_in_the_next_one(node: Node) -> None:
    node.add()
    await node.runs()
    path = log_of(node)
    path.write_bytes(LINE.replace(b"text", b"one"))
    body = await node.kubelet.handler(node.request("/containerLogs/default/web/c1", follow="true"))
    assert not isinstance(body.body, bytes)
    lines = body.body.__aiter__()
    assert await anext(lines) == b"one\n"
    path.rename(path.with_name("0.log.1"))
    path.write_bytes(LINE.replace(b"text", b"two"))
    assert await anext(lines) == b"two\n"
    await body.body.aclose()  # type: ignore[attr-defined]  # an async generator


async def test_a_directory_that_became_a_link_leads_nowhere_and_holds_no_other_log_up(
    node: Node, tmp_path: Path
) -> None:
    """A pod that may write to the logs' directory puts a link to somebody else's in the place of its own."""
    for name in ("evil", "good"):
        node.add(name)
        await node.runs(name)
    paths = {status.labels["io.kubernetes.pod.name"]: Path(status.log_path) for status in logs_of(node)}
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for log in (theirs / "0.log", paths["good"]):
        fill(log)
    for number in range(MOST_FILES + 2):
        (theirs / f"0.log.{number}").touch()
    own = paths["evil"].parent
    own.rename(own.with_name("moved"))
    own.symlink_to(theirs)
    await node.advance(10)
    assert len(list(theirs.iterdir())) == MOST_FILES + 3
    assert (theirs / "0.log").stat().st_size > MOST_BYTES
    assert len(kept(paths["good"])) == 1
    with pytest.raises(NotADirectoryError):
        delete_log(paths["evil"])


def logs_of(node: Node) -> tuple[ContainerStatus, ...]:
    return node.runtime.containers()
