"""Logs that grow are set aside, and no more than a few of them are kept."""

from pathlib import Path

from kubelet.harness import Node
from podfit.kubelet.runtime.log_rotation import MOST_BYTES, MOST_FILES, rotated

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
