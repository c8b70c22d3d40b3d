"""What systemd says, where there is one."""

from pathlib import Path

import pytest

from podfit.process.node.cluster_node import service_manager


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (("sh", "-c", "echo stopping; exit 1"), "stopping"),
        (("sh", "-c", "echo running"), "running"),
        (("false",), "unknown"),
        (("/no/such/program",), "unknown"),
    ],
)
async def test_where_systemd_runs_it_is_asked(tmp_path: Path, question: tuple[str, ...], answer: str) -> None:
    assert await service_manager(tmp_path, question) == answer


async def test_where_it_does_not_nobody_is_asked(tmp_path: Path) -> None:
    assert await service_manager(tmp_path / "no", ("/no/such/program",)) == ""
